#!/bin/sh
# usage: index.sh add|drop NAME
# An index of the file `indexes`, in this run's copy of the database: SQLite cannot hide one.
set -eu
columns=$(awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$REFIT_RECIPE/indexes")
if [ -z "$columns" ]; then
	echo "there is no index $2 in the recipe's file \`indexes\`" >&2
	exit 1
fi
case $1 in
add) sqlite3 -bail shop.db "CREATE INDEX $2 ON orders ($columns); ANALYZE" ;;
drop) sqlite3 -bail shop.db "DROP INDEX $2; ANALYZE" ;;
esac
