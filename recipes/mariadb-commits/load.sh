#!/bin/sh
# $REFIT_LOAD_CLIENTS clients insert one row each time, and each INSERT is committed before the next one.
# usage: load.sh COUNT TABLE
set -eu
if [ $(($1 % REFIT_LOAD_CLIENTS)) -ne 0 ]; then
	echo "$1 inserts cannot be shared among $REFIT_LOAD_CLIENTS clients" >&2
	exit 1
fi
mariadb-slap --defaults-file="$REFIT_DIR/my.cnf" --silent --concurrency="$REFIT_LOAD_CLIENTS" --number-of-queries="$1" \
	--create-schema=bench --no-drop \
	--query="INSERT INTO $2 (body) VALUES ('a row that its client takes for safe when the server has said OK')"
