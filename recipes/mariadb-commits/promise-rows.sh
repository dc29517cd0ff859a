#!/bin/sh
# For the promise: a row for each transaction. The client prints the id only after its INSERT was answered.
set -eu
number=0
while :; do
	number=$((number + 1))
	echo "INSERT INTO t VALUES ($number, repeat('x', 1000)); SELECT $number;"
	sleep 0.002
done | mariadb --defaults-file="$REFIT_DIR/my.cnf" --unbuffered --skip-column-names promise
