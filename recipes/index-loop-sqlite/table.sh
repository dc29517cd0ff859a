#!/bin/sh
# How SQLite reads in this variant, and the indexes that the file has.
set -eu
sqlite3 shop.db "EXPLAIN QUERY PLAN SELECT id, created_at, status FROM orders WHERE customer_id = 1 ORDER BY created_at DESC LIMIT 20" |
	sed -n 's/^[|` ]*-- *//p' |
	awk '{ all = all (NR > 1 ? "; " : "") $0 } END { print "plan of the read\t" all }'
sqlite3 shop.db "SELECT name || ' (' || group_concat(column, ', ') || ')' FROM
	(SELECT l.name, i.name AS column FROM pragma_index_list('orders') l, pragma_index_info(l.name) i ORDER BY l.name, i.seqno)
	GROUP BY name" |
	awk '{ all = all (NR > 1 ? ", " : "") $0 } END { print "indexes\t" (NR ? all : "none but the rowid") }'
