#!/bin/sh
# Once untimed, after which pages are in memory; then $REFIT_OPERATIONS times. Times are taken in the client's own session,
# from before each statement until its rows have come. What a statement writes is rolled back.
set -eu
. "$REFIT_RECIPE/server.sh"
awk -v passes="$REFIT_OPERATIONS" '
	{ all = all $0 "\n" }
	END { for (i = 0; i <= passes; i++) printf "SET @pass = %d;\n%s", i, all }' "$REFIT_RECIPE/queries.sql" >load.sql
{ copy <load.sql || echo refit:failed; } | grep '^refit:' >load.out
! grep -q refit:failed load.out
awk -F '\t' '
	$2 > 0 { sum[$3] += $4; count[$3]++; all += $4; statements++ }
	$2 == 0 { print $3, $5, "rows" >"answers" }
	END {
		printf "time %.2f us\n", all / statements
		for (query in sum) printf "%s %.2f us\n", query, sum[query] / count[query]
	}' load.out
client -e "SELECT CONCAT('size ', SUM(stat_value) * @@innodb_page_size) FROM mysql.innodb_index_stats
	WHERE database_name = '$(cat database)' AND stat_name = 'size'"
