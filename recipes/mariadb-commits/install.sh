#!/bin/sh
# Makes the data directory of my.cnf, with one account.
set -eu
sed -i "s|@USER@|$(id -un)|" my.cnf
mariadb-install-db --defaults-file="$REFIT_DIR/my.cnf" --auth-root-authentication-method=socket \
	--auth-root-socket-user="$(id -un)" --skip-test-db >setup.log 2>&1 || { cat setup.log >&2; exit 1; }
