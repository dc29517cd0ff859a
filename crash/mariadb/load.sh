#!/bin/sh
# A row for each transaction. The client prints the id's own row only when the INSERT before it has been answered.
set -eu
/usr/bin/python3 ../rows.py "INSERT INTO t VALUES (%d, repeat('x', 1000)); SELECT %d;" |
	mariadb --defaults-file="$REFIT_MOUNT/my.cnf" --unbuffered --skip-column-names refit
