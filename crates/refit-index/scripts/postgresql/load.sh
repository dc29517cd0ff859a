#!/bin/sh
# Once untimed, after which pages are in memory; then $REFIT_OPERATIONS times. psql takes the time of each statement, until
# its rows have come. What a statement writes is rolled back.
set -eu
. "$REFIT_RECIPE/server.sh"
awk -v passes="$REFIT_OPERATIONS" '
	{ all = all $0 "\n" }
	END {
		print "\\timing on\n\\o /dev/null"
		for (i = 0; i <= passes; i++) printf "\\echo pass %d\n%s", i, all
	}' "$REFIT_RECIPE/queries.sql" >load.sql
client -U copy -f load.sql >load.out
awk '
	$1 == "pass" { pass = $2 }
	/^q[0-9]+$/ { query = $1; next }
	/^Time: / && query != "" {
		if (pass > 0) { sum[query] += $2; count[query]++; all += $2; statements++ }
		last = query
		query = ""
	}
	$1 == "rows" && pass == 0 { print last, $2, "rows" >"answers" }
	END {
		printf "time %.2f us\n", all / statements * 1000
		for (query in sum) printf "%s %.2f us\n", query, sum[query] / count[query] * 1000
	}' load.out
client -c "SELECT 'size ' || sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
	WHERE relkind IN ('r', 'm') AND nspname NOT IN ('pg_catalog', 'information_schema')"
