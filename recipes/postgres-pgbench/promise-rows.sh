#!/bin/sh
# For the promise: a row for each transaction. psql prints its id after the server has answered the INSERT. (RETURNING
# would print the row before its commit.)
set -eu
. "$REFIT_RECIPE/path.sh"
number=0
while :; do
	number=$((number + 1))
	printf "INSERT INTO t VALUES (%d, repeat('x', 100));\n\\\\echo %d\n" "$number" "$number"
	sleep 0.002
done | psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1
