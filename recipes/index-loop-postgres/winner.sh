#!/bin/sh
# The last step: what one of the indexes would take on a database of your own, as plain SQL on stdout.
#
# usage: sh winner.sh NAME CLIENT…          CLIENT… is psql with what it needs to reach the database
#        sh winner.sh customer_day psql shop                to be read
#        sh winner.sh customer_day psql shop | psql shop    to be done
#        sh winner.sh customer_day psql shop >>schema.sql   for sqldef, after its exported schema
#
# The catalog decides, and not a parser of SQL: where an index of these columns is there already, under any name, nothing
# is to be done. An INVALID one, which CREATE INDEX CONCURRENTLY leaves when it fails, does not count.
set -eu
if [ $# -lt 2 ]; then
	sed -n '4,7s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
name=$1
shift
columns=$(awk -F '\t' -v name="$name" '$1 == name { print $2 }' "$(dirname "$0")/indexes")
if [ -z "$columns" ]; then
	echo "winner.sh: there is no index $name; there are: $(cut -f 1 "$(dirname "$0")/indexes" | tr '\n' ' ')" >&2
	exit 2
fi
# One line for each index: its name, its columns, whether it is valid and whole (no WHERE).
catalog=$("$@" -XqAt -F "$(printf '\t')" -c "SELECT c.relname, string_agg(a.attname, ', ' ORDER BY k.place),
		i.indisvalid, i.indpred IS NULL
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
	JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k (column_number, place) ON true
	LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number
	WHERE i.indrelid = to_regclass('orders') GROUP BY 1, 3, 4")
if [ -z "$catalog" ]; then
	echo "winner.sh: \`$*\` shows no table orders with a key; name its database" >&2
	exit 1
fi
printf '%s\n' "$catalog" | awk -F '\t' -v name="$name" -v columns="$columns" '
	$2 == columns && $3 == "t" && $4 == "t" && !there { there = $1 }
	$3 == "f" { invalid = invalid "DROP INDEX CONCURRENTLY \"" $1 "\";\n"; if ($1 == name) next }
	$1 == name && $2 != columns { taken = $2 }
	END {
		printf "%s", invalid
		if (there != "") {
			if (invalid == "") print "-- nothing is to be done: " there " (" columns ") is there"
		} else if (taken != "") {
			print "winner.sh: another index has the name " name ": (" taken ")" >"/dev/stderr"
			exit 1
		} else {
			print "CREATE INDEX CONCURRENTLY " name " ON orders (" columns ");"
		}
	}'
