#!/bin/sh
# The program, and how it is to be run.
set -eu
gcc -std=c11 -O2 -Wall -Wextra -o commits "$REFIT_RECIPE/commits.c" -llmdb
echo sync=both >lmdb.conf
mkdir data
