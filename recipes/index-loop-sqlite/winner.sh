#!/bin/sh
# The last step: what one of the indexes would take on a database of your own, as plain SQL on stdout.
#
# usage: sh winner.sh NAME FILE
#        sh winner.sh customer_day shop.db                       to be read
#        sh winner.sh customer_day shop.db | sqlite3 shop.db     to be done
#        sh winner.sh customer_day shop.db >>schema.sql          for sqldef, after its exported schema
#
# The catalog decides, and not a parser of SQL: where an index of these columns is there already, under any name, nothing
# is to be done. A partial one (WHERE) is none.
set -eu
if [ $# -ne 2 ]; then
	sed -n '4,7s/^# \{0,1\}//p' "$0" >&2
	exit 2
fi
columns=$(awk -F '\t' -v name="$1" '$1 == name { print $2 }' "$(dirname "$0")/indexes")
if [ -z "$columns" ]; then
	echo "winner.sh: there is no index $1; there are: $(cut -f 1 "$(dirname "$0")/indexes" | tr '\n' ' ')" >&2
	exit 2
fi
if [ ! -f "$2" ] || [ "$(sqlite3 -readonly "$2" "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'orders'")" != 1 ]; then
	echo "winner.sh: $2 is not an SQLite file with a table orders" >&2
	exit 1
fi
sqlite3 -readonly -separator "$(printf '\t')" "$2" "SELECT name, group_concat(column, ', ') FROM
	(SELECT l.name, i.name AS column FROM pragma_index_list('orders') l, pragma_index_info(l.name) i WHERE NOT l.partial
		ORDER BY l.name, i.seqno) GROUP BY name" |
	awk -F '\t' -v name="$1" -v columns="$columns" '
	$2 == columns && !there { there = $1 }
	$1 == name && $2 != columns { taken = $2 }
	END {
		if (there != "") {
			print "-- nothing is to be done: " there " (" columns ") is there"
		} else if (taken != "") {
			print "winner.sh: another index has the name " name ": (" taken ")" >"/dev/stderr"
			exit 1
		} else {
			print "CREATE INDEX " name " ON orders (" columns ");"
		}
	}'
