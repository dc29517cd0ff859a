#!/bin/sh
# The server, and memcheck's verdict on a few requests of each way to leak. Here, because setup is the phase with
# nothing swapped: memcheck judges the program, not an allocator.
set -eu
gcc -std=c11 -O2 -g -Wall -o server "$REFIT_RECIPE/server.c" -lmruby -lm
for leak in lost kept; do
    echo 200 | valgrind --leak-check=full --log-file="memcheck.$leak" ./server "$leak" "$REFIT_RECIPE/handler.rb" \
        >/dev/null 2>&1
done
echo lost >leak
mkfifo ask answer
