#!/bin/sh
# A file with a million orders of 5,000 customers; a check of the recipe itself needs fewer.
set -eu
rows=1000000
[ "$REFIT_OPERATIONS" -ge 1000 ] || rows=100000
echo "rows=$rows" >shop.conf
# A product that wraps scatters: customers come in no order, and the same ones in every run.
sqlite3 -bail shop.db <<END
PRAGMA journal_mode = WAL;
.read $REFIT_RECIPE/schema.sql
WITH RECURSIVE seq(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM seq WHERE i < $rows)
INSERT INTO orders SELECT i, (i * 2654435761 % 4294967296) % 5000, datetime('2026-01-01', i || ' seconds'), i * 7 % 5,
	'order ' || i || ' of a shop' FROM seq;
ANALYZE;
END
