#!/bin/sh
# pgbench's own transactions (three updates, a select and an insert each) from $REFIT_LOAD_CLIENTS clients, and their latencies.
set -eu
. "$REFIT_RECIPE/path.sh"
if [ $((REFIT_OPERATIONS % REFIT_LOAD_CLIENTS)) -ne 0 ]; then
	echo "$REFIT_OPERATIONS transactions cannot be shared among $REFIT_LOAD_CLIENTS clients" >&2
	exit 1
fi

# One line for each transaction, on tmpfs: not on the disk that is being measured.
pgbench --no-vacuum --client="$REFIT_LOAD_CLIENTS" --transactions=$((REFIT_OPERATIONS / REFIT_LOAD_CLIENTS)) \
	--log --log-prefix="$REFIT_TMPFS/latency"
# The third column is in microseconds. Counted and not sorted: this is within the measured time.
awk '
	{ count[$3]++; if ($3 > longest) longest = $3 }
	END {
		for (us = 0; us <= longest; us++) {
			if (!(us in count)) continue
			seen += count[us]
			if (!p50 && seen >= NR * 0.50) p50 = us
			if (!p99 && seen >= NR * 0.99) p99 = us
		}
		print "p50 " p50 " us\np99 " p99 " us"
	}' "$REFIT_TMPFS"/latency.*
