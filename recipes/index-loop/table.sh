#!/bin/sh
# How the server reads in this variant: its plan without estimates, which differ from run to run, and what it has.
set -eu
. "$REFIT_RECIPE/server.sh"
client -BN shop -e "EXPLAIN SELECT id, created_at, status FROM orders WHERE customer_id = 1 ORDER BY created_at DESC LIMIT 20" |
	awk -F '\t' '{ print "plan of the read\t" $4 ", " ($6 == "NULL" ? "no key" : "key " $6) ($10 == "" ? "" : "; " $10) }'
client -BN shop -e "SELECT CONCAT(index_name, ' (', GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', '), ')',
	IF(MAX(ignored) = 'YES', ' IGNORED', '')) FROM information_schema.STATISTICS
	WHERE table_schema = 'shop' AND table_name = 'orders' GROUP BY index_name ORDER BY index_name" |
	awk '{ all = all (NR > 1 ? ", " : "") $0 } END { print "indexes\t" all }'
