#!/bin/sh
# Every statement gave as many rows as in every other run, no index is invalid, and the server had nothing to complain.
set -eu
. "$REFIT_RECIPE/server.sh"
invalid=$(client -c 'SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid')
if [ -n "$invalid" ]; then
	echo "INVALID: $invalid" >&2
	exit 1
fi
if grep -E '(ERROR|FATAL|PANIC):' server.log >&2; then exit 1; fi
echo "$(wc -l <answers) statements (checksum of their numbers of rows: $(cksum <answers | cut -d ' ' -f 1))"
