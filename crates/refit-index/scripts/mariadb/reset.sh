#!/bin/sh
# What statements wrote was rolled back: it is taken out of each index in the background, and not within the next window.
set -eu
. "$REFIT_RECIPE/server.sh"
began=$(date +%s)
until [ "$(client -e "SELECT count FROM information_schema.INNODB_METRICS WHERE name = 'trx_rseg_history_len'")" = 0 ]; do
	if [ $(($(date +%s) - began)) -gt 30 ]; then
		echo 'the purge of rows that were rolled back did not end within 30 s' >&2
		exit 1
	fi
done
# A new index's pages are written in the background as well. FOR EXPORT writes all of a table's, and waits for it.
tables 'FLUSH TABLES ' ' FOR EXPORT; UNLOCK TABLES;' | client
