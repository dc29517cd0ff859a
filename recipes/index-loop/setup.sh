#!/bin/sh
# A MariaDB of its own in $REFIT_DIR, with a million orders of 5,000 customers.
set -eu
. "$REFIT_RECIPE/server.sh"
version=$(mariadbd --version | sed -n 's/.*Ver \([0-9.]*\)-MariaDB.*/\1/p')
if [ "$(printf '%s\n' 10.6 "${version:-0}" | sort -V | head -n 1)" != 10.6 ]; then
	echo "MariaDB ${version:-of no known version} has no IGNORED indexes; it takes 10.6 or later" >&2
	exit 1
fi
sed "s|@DIR@|$REFIT_DIR|; s|@USER@|$(id -un)|" "$REFIT_RECIPE/my.cnf" >my.cnf
mariadb-install-db --defaults-file="$REFIT_DIR/my.cnf" --auth-root-authentication-method=socket \
	--auth-root-socket-user="$(id -un)" --skip-test-db >setup.log 2>&1 || { cat setup.log >&2; exit 1; }
# --bootstrap: the server reads SQL from its input, one statement to a line, and ends. Nothing is measured yet.
{
	printf '%s\n' 'CREATE DATABASE shop;' 'USE shop;'
	tr '\n' ' ' <"$REFIT_RECIPE/schema.sql"
	echo
	# CRC32 scatters: customers come in no order, and the same ones in every run.
	echo "INSERT INTO orders SELECT seq, CRC32(seq) % 5000, '2026-01-01' + INTERVAL seq SECOND," \
		"CRC32(seq * 7) % 5, CONCAT('order ', seq, ' of a shop') FROM seq_1_to_$rows;"
	echo 'ANALYZE TABLE orders;'
} >setup.sql
mariadbd --defaults-file="$REFIT_DIR/my.cnf" --bootstrap --innodb-flush-log-at-trx-commit=0 <setup.sql >>setup.log 2>&1 ||
	{ tail -n 3 setup.log server.log >&2; exit 1; }
