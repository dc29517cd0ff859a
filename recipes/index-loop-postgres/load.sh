#!/bin/sh
# $REFIT_OPERATIONS orders come in, a hundred to a transaction; after each hundred a customer looks at his last
# twenty. The server's clock is asked in the client's own session, so that no start of a client is in it.
set -eu
. "$REFIT_RECIPE/server.sh"
awk -v orders="$REFIT_OPERATIONS" -v first="$rows" 'BEGIN {
	clock = "SELECT extract(epoch FROM clock_timestamp()) * 1000000 AS "
	print "SELECT 0 AS read, 0 AS write, 0 AS reads \\gset"
	for (i = 1; i <= orders; i++) {
		if (i % 100 == 1) { print clock "t0 \\gset"; print "BEGIN;" }
		printf "INSERT INTO orders (customer_id, created_at, status, note) VALUES (%d, timestamp \047%s\047 + %d * interval \0471 second\047, %d, \047order %d of a shop\047);\n",
			(i * 7919) % 5000, "2026-02-01", i, i % 5, first + i
		if (i % 100 == 0 || i == orders) {
			print "COMMIT;"
			print clock "t1 \\gset"
			printf "SELECT id, created_at, status FROM orders WHERE customer_id = %d ORDER BY created_at DESC LIMIT 20;\n", (i * 31) % 5000
			print clock "t2 \\gset"
			print "SELECT :read + :t2 - :t1 AS read, :write + :t1 - :t0 AS write, :reads + 1 AS reads \\gset"
		}
	}
	printf "\\echo read :read :reads :write %d\n", orders
}' >load.sql
client -f load.sql >answers
# The last line are the times; what was read is for the check.
tail -n 1 answers | awk '{ printf "read %.1f us, write %.2f us\n", $2 / $3, $4 / $5 }'
sed -i '$d' answers
client -c "SELECT 'indexes ' || pg_total_relation_size('orders')"
