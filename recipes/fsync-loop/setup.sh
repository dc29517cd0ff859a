#!/bin/sh
# The program, and how it is to be run.
set -eu
gcc -std=c11 -O2 -Wall -o loop "$REFIT_RECIPE/loop.c"
cat >loop.conf <<END
mode=both
file='$REFIT_DIR/lines'
END
