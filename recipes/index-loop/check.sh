#!/bin/sh
# Every order is there, every variant reads the same, and the server had nothing to complain.
set -eu
. "$REFIT_RECIPE/server.sh"
if grep -F '[ERROR]' server.log >&2; then exit 1; fi
added=$(($(client -BN shop -e 'SELECT count(*) FROM orders') - rows))
if [ "$added" != "$REFIT_OPERATIONS" ]; then
	echo "$added orders came in, not $REFIT_OPERATIONS" >&2
	exit 1
fi
echo "$added orders came in, and $(wc -l <answers) lines were read (checksum $(cksum <answers | cut -d ' ' -f 1))"
