#!/bin/sh
# How the server reads in this variant: its plan without costs, and the indexes that it has.
set -eu
. "$REFIT_RECIPE/server.sh"
client -c "EXPLAIN (COSTS off) SELECT id, created_at, status FROM orders WHERE customer_id = 1 ORDER BY created_at DESC LIMIT 20" |
	grep -E '^(Limit|.*->)' | sed 's/^ *-> *//' |
	awk '{ all = all (NR > 1 ? ", " : "") $0 } END { print "plan of the read\t" all }'
client -c "SELECT regexp_replace(indexdef, '^CREATE (UNIQUE )?INDEX (.*) ON .* USING (.*)$', '\2 \3') ||
	CASE WHEN indisvalid THEN '' ELSE ' INVALID' END
	FROM pg_indexes JOIN pg_index ON indexrelid = indexname::regclass WHERE tablename = 'orders' ORDER BY 1" |
	awk '{ all = all (NR > 1 ? ", " : "") $0 } END { print "indexes\t" all }'
