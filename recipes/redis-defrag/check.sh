#!/bin/sh
# All was written, and a twentieth of it is there.
set -eu
written=$(redis-cli -s socket get written)
kept=$(($(redis-cli -s socket dbsize | tr -dc 0-9) - 1))
if [ "$written" != "$REFIT_OPERATIONS" ] || [ "$kept" != $((REFIT_OPERATIONS / 20)) ]; then
    echo "$written written and $kept kept, not $REFIT_OPERATIONS and a twentieth of that" >&2
    exit 1
fi
echo "$written written, $kept kept"
