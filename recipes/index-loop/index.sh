#!/bin/sh
# usage: index.sh add|drop|ignore|heed NAME
# An index of the file `indexes`. `ignore` keeps it, and no plan uses it until `heed`.
set -eu
. "$REFIT_RECIPE/server.sh"
columns=$(awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$REFIT_RECIPE/indexes")
if [ -z "$columns" ]; then
	echo "there is no index $2 in the recipe's file \`indexes\`" >&2
	exit 1
fi
case $1 in
add) client shop -e "CREATE INDEX $2 ON orders ($columns); ANALYZE TABLE orders" >/dev/null ;;
drop) client shop -e "DROP INDEX $2 ON orders" ;;
ignore) client shop -e "ALTER TABLE orders ALTER INDEX $2 IGNORED" ;;
heed) client shop -e "ALTER TABLE orders ALTER INDEX $2 NOT IGNORED" ;;
esac
