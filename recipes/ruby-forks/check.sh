#!/bin/sh
# Everything is still there at the window's end: each thread of the parent, by the name that Ruby gives it, and each
# child, alive and the parent's own.
read -r pid <pid

asleep=$(cat "/proc/$pid/task"/*/stat | grep -c '(forks\.rb:[0-9]*) S ')
if [ "$asleep" -ne "$THREADS" ]; then
    echo "$asleep of $THREADS threads are alive and asleep" >&2
    exit 1
fi

alive=0
while read -r child; do
    status=/proc/$child/status
    if grep -qs "^PPid:[[:space:]]*$pid\$" "$status" && grep -qs '^State:[[:space:]]*S' "$status"; then
        alive=$((alive + 1))
    fi
done <children
if [ "$alive" -ne "$REFIT_OPERATIONS" ]; then
    echo "$alive of $REFIT_OPERATIONS children are alive" >&2
    exit 1
fi
echo "$asleep threads asleep in the parent, $alive children alive"
