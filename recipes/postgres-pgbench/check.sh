#!/bin/sh
# Each transaction left its line in the history, the balances agree with it, and the server had nothing to complain.
set -eu
. "$REFIT_RECIPE/path.sh"
if grep -E 'ERROR|FATAL|PANIC' server.log >&2; then exit 1; fi

history=$(psql -XAtc 'SELECT count(*), sum(delta) FROM pgbench_history')
count=${history%|*} sum=${history#*|}
if [ "$count" != "$REFIT_OPERATIONS" ]; then
	echo "the history has $count transactions, not $REFIT_OPERATIONS" >&2
	exit 1
fi
balances=$(psql -XAtc 'SELECT (SELECT sum(abalance) FROM pgbench_accounts),
	(SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches)')
if [ "$balances" != "$sum|$sum|$sum" ]; then
	echo "the balances are $balances, and the history adds up to $sum" >&2
	exit 1
fi
echo "$count transactions, balances agree"
