#!/bin/sh
# The server, and memcheck's verdict on a few requests and small imports. Here, because setup is the phase with nothing
# swapped: memcheck judges the program, not an allocator.
set -eu
gcc -std=c11 -O2 -g -Wall -o server "$REFIT_RECIPE/server.c" -lmruby -lm
echo 200 | valgrind --leak-check=full --log-file=memcheck ./server "$REFIT_RECIPE/handler.rb" 100 2000 >/dev/null 2>&1
mkfifo ask answer
