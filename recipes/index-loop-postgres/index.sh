#!/bin/sh
# usage: index.sh add|drop NAME
# An index of the file `indexes`, built and dropped as on a server that is in use: no writer waits for it.
set -eu
. "$REFIT_RECIPE/server.sh"
columns=$(awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$REFIT_RECIPE/indexes")
if [ -z "$columns" ]; then
	echo "there is no index $2 in the recipe's file \`indexes\`" >&2
	exit 1
fi
case $1 in
add)
	status=0
	client -c "CREATE INDEX CONCURRENTLY $2 ON orders ($columns)" || status=$?
	# One that failed half-way is not removed: no plan uses it, every write maintains it, and IF NOT EXISTS takes it for there.
	if [ "$(client -c "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('$2')")" = f ]; then
		client -c "DROP INDEX CONCURRENTLY $2"
		echo "CREATE INDEX CONCURRENTLY left $2 INVALID; it was dropped" >&2
		exit 1
	fi
	exit $status
	;;
drop) client -c "DROP INDEX CONCURRENTLY $2" ;;
esac
