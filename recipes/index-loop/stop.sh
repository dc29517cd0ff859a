#!/bin/sh
# Ends the server. An index that nobody uses and everybody maintains does not stay.
set -eu
. "$REFIT_RECIPE/server.sh"
ignored=$(client -BN -e "SELECT DISTINCT index_name FROM information_schema.STATISTICS WHERE table_schema = 'shop' AND ignored = 'YES'")
mariadb-admin --defaults-file="$REFIT_DIR/my.cnf" shutdown
if [ -n "$ignored" ]; then
	echo "left IGNORED: $ignored" >&2
	exit 1
fi
