#!/bin/sh
# Each write was counted once.
set -eu
counter=$(redis-cli -s socket get counter)
if [ "$counter" != "$REFIT_OPERATIONS" ]; then
	echo "the counter is $counter, not $REFIT_OPERATIONS" >&2
	exit 1
fi
echo "$counter writes"
