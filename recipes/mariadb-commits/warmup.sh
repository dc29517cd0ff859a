#!/bin/sh
# Both tables, and some commits into the one that is not counted.
set -eu
client() { mariadb --defaults-file="$REFIT_DIR/my.cnf" "$@"; }
client -e 'CREATE DATABASE bench'
for table in warm t; do
	client bench -e "CREATE TABLE $table (id INT AUTO_INCREMENT PRIMARY KEY, body VARCHAR(100) NOT NULL)"
done
exec sh "$REFIT_RECIPE/load.sh" 500 warm
