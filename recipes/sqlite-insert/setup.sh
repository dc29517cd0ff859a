#!/bin/sh
# The statements, and how they are to be run.
set -eu
awk -v count="$REFIT_OPERATIONS" 'BEGIN {
	for (i = 1; i <= count; i++)
		printf "INSERT INTO t (id, body) VALUES (%d, \047row %07d of a table that grows by one row at a time\047);\n", i, i
}' >insert.sql

# journal_mode=delete and synchronous=FULL are what SQLite does when nobody asks.
cat >pragma.sql <<'END'
PRAGMA journal_mode=delete;
PRAGMA synchronous=FULL;
END
cat >sqlite.conf <<END
db='$REFIT_DIR/t.db'
END
