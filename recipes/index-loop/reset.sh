#!/bin/sh
# The table as setup.sh made it, whatever the last run added; and read once, as it would be in a shop that is open.
set -eu
. "$REFIT_RECIPE/server.sh"
client shop -e "
	DELETE FROM orders WHERE id > $rows;
	ALTER TABLE orders AUTO_INCREMENT = $((rows + 1));
	SELECT count(note) FROM orders" >/dev/null
# Deleted rows are taken out of each index in the background: not within the next window.
began=$(date +%s)
until [ "$(client -BN -e "SELECT count FROM information_schema.INNODB_METRICS WHERE name = 'trx_rseg_history_len'")" = 0 ]; do
	if [ $(($(date +%s) - began)) -gt 30 ]; then
		echo 'the purge of deleted rows did not end within 30 s' >&2
		exit 1
	fi
done
# A fresh index's pages are written in the background as well. FOR EXPORT writes all of the table's, and waits for it.
client shop -e 'FLUSH TABLES orders FOR EXPORT; UNLOCK TABLES'
