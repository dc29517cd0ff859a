#!/bin/sh
# Every question has its answer, and no server had trouble other than with what was asked.
set -eu
if grep -F '[ERROR]' mysql.log >&2 || grep -E 'FATAL|PANIC' postgres.log >&2; then exit 1; fi
count=$(wc -l <answers)
if [ "$count" != "$REFIT_OPERATIONS" ]; then
	echo "$count answers, not $REFIT_OPERATIONS" >&2
	exit 1
fi
echo "$count questions answered"
