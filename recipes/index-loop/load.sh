#!/bin/sh
# $REFIT_OPERATIONS orders come in, a hundred to a transaction; after each hundred a customer looks at his last
# twenty. Times are taken in the client's own session, without its start.
set -eu
. "$REFIT_RECIPE/server.sh"
awk -v orders="$REFIT_OPERATIONS" -v first="$rows" 'BEGIN {
	print "SET @reads = 0, @read = 0, @write = 0;"
	for (i = 1; i <= orders; i++) {
		if (i % 100 == 1) print "SET @t = SYSDATE(6); BEGIN;"
		printf "INSERT INTO orders (customer_id, created_at, status, note) VALUES (%d, \"2026-02-01\" + INTERVAL %d SECOND, %d, \"order %d of a shop\");\n",
			(i * 7919) % 5000, i, i % 5, first + i
		if (i % 100 == 0 || i == orders) {
			print "COMMIT; SET @write = @write + TIMESTAMPDIFF(MICROSECOND, @t, SYSDATE(6)), @t = SYSDATE(6);"
			printf "SELECT id, created_at, status FROM orders WHERE customer_id = %d ORDER BY created_at DESC LIMIT 20;\n", (i * 31) % 5000
			print "SET @reads = @reads + 1, @read = @read + TIMESTAMPDIFF(MICROSECOND, @t, SYSDATE(6));"
		}
	}
	printf "SELECT CONCAT(\"read \", @read / @reads, \" us, write \", @write / %d, \" us\");\n", orders
}' >load.sql
client -BN shop <load.sql >answers
# The last line are the times; what was read is for the check.
tail -n 1 answers
sed -i '$d' answers
client -BN shop -e "ANALYZE TABLE orders; SELECT CONCAT('indexes ', SUM(stat_value) * @@innodb_page_size)
	FROM mysql.innodb_index_stats WHERE database_name = 'shop' AND table_name = 'orders' AND stat_name = 'size'" |
	grep indexes
