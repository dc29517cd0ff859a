#!/bin/sh
# The file is whole, and every statement gave as many rows as in every other run.
set -eu
state=$(sqlite3 data.db 'PRAGMA quick_check')
if [ "$state" != ok ]; then
	echo "quick_check: $state" >&2
	exit 1
fi
echo "$(wc -l <answers) statements (checksum of their numbers of rows: $(cksum <answers | cut -d ' ' -f 1))"
