#!/bin/sh
# A row for each transaction; psql prints its id when the server has committed it.
set -eu
. ./path.sh
# RETURNING would print the row before its commit: the id comes from a line of its own, which psql reaches when the
# INSERT has been answered.
/usr/bin/python3 ../rows.py "INSERT INTO t VALUES (%d, repeat('x', 100));
\echo %d" | psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1
