#!/bin/sh
# Every order is there, every variant reads the same, and the file is whole.
set -eu
. ./shop.conf
state=$(sqlite3 shop.db 'PRAGMA quick_check')
if [ "$state" != ok ]; then
	echo "quick_check: $state" >&2
	exit 1
fi
added=$(($(sqlite3 shop.db 'SELECT count(*) FROM orders') - rows))
if [ "$added" != "$REFIT_OPERATIONS" ]; then
	echo "$added orders came in, not $REFIT_OPERATIONS" >&2
	exit 1
fi
echo "$added orders came in, and $(wc -l <answers) lines were read (checksum $(cksum <answers | cut -d ' ' -f 1))"
