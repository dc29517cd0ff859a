#!/bin/sh
# Every row is there, the table is whole, and the server had nothing to complain.
set -eu
query() { mariadb --defaults-file="$REFIT_DIR/my.cnf" -BN bench -e "$1"; }

if grep -F '[ERROR]' server.log >&2; then exit 1; fi
rows=$(query 'SELECT count(*) FROM t')
if [ "$rows" != "$REFIT_OPERATIONS" ]; then
	echo "$rows rows, not $REFIT_OPERATIONS" >&2
	exit 1
fi
state=$(query 'CHECK TABLE t' | cut -f 3-)
if [ "$state" != "$(printf 'status\tOK')" ]; then
	echo "CHECK TABLE: $state" >&2
	exit 1
fi
echo "$rows rows, table OK"
