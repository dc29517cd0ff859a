#!/bin/sh
# The last step: what one of the indexes would take on a database of your own, as plain SQL on stdout.
#
# usage: sh winner.sh NAME CLIENT…          CLIENT… is mariadb with what it needs to reach the database
#        sh winner.sh customer_day mariadb shop                   to be read
#        sh winner.sh customer_day mariadb shop | mariadb shop    to be done
#        sh winner.sh customer_day mariadb shop >>schema.sql      for sqldef, after its exported schema
#
# The catalog decides, and not a parser of SQL: where an index of these columns is there already, under any name, nothing
# is to be done. One that is IGNORED is not left so: no plan uses it, every write maintains it, and sqldef cannot read it.
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
# One line for each index: its name, its columns, whether it is ignored.
catalog=$("$@" -BN -e "SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', '), MAX(ignored)
	FROM information_schema.STATISTICS WHERE table_schema = DATABASE() AND table_name = 'orders' GROUP BY index_name")
if [ -z "$catalog" ]; then
	echo "winner.sh: \`$*\` shows no table orders; name its database" >&2
	exit 1
fi
printf '%s\n' "$catalog" | awk -F '\t' -v name="$name" -v columns="$columns" '
	$3 == "YES" { print "ALTER TABLE `orders` ALTER INDEX `" $1 "` NOT IGNORED;" }
	$2 == columns && !there { there = $1; ignored = $3 == "YES" }
	$1 == name && $2 != columns { taken = $2 }
	END {
		if (there != "") {
			if (!ignored) print "-- nothing is to be done: " there " (" columns ") is there"
		} else if (taken != "") {
			print "winner.sh: another index has the name " name ": (" taken ")" >"/dev/stderr"
			exit 1
		} else {
			print "ALTER TABLE `orders` ADD KEY `" name "` (" columns ");"
		}
	}'
