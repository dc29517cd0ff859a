#!/bin/sh
# Every row is there, and the database is whole.
set -eu
. ./sqlite.conf
query() { sqlite3 -batch -bail -readonly -init /dev/null "$db" "$1"; }

integrity=$(query 'PRAGMA integrity_check')
if [ "$integrity" != ok ]; then
	echo "integrity_check: $integrity" >&2
	exit 1
fi
# Count, sum and last number: neither lost, nor twice, nor another one instead.
expected=$(awk -v n="$REFIT_OPERATIONS" 'BEGIN { printf "%d|%d|%d", n, n * (n + 1) / 2, n }')
rows=$(query "SELECT count(*), sum(substr(body, 5, 7)), max(id) FROM t")
if [ "$rows" != "$expected" ]; then
	echo "rows|sum|last is $rows, not $expected" >&2
	exit 1
fi
echo "$REFIT_OPERATIONS rows, integrity ok"
