#!/bin/sh
# Counts the threads in the kernel, not in Ruby: all of them, by the name that Ruby gives them, and asleep.
read -r pid <pid

asleep=$(cat "/proc/$pid/task"/*/stat | grep -c '(threads\.rb:[0-9]*) S ')
if [ "$asleep" -ne "$REFIT_OPERATIONS" ]; then
    echo "$asleep of $REFIT_OPERATIONS threads are alive and asleep" >&2
    exit 1
fi
echo "$asleep threads alive and asleep"
