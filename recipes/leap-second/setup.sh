#!/bin/sh
# A MariaDB in $REFIT_DIR that was never started. PostgreSQL is made in the load: initdb writes its zone down.
set -eu
. "$REFIT_RECIPE/programs.sh"
sed "s|@DIR@|$REFIT_DIR|; s|@USER@|$(id -un)|" "$REFIT_RECIPE/my.cnf" >my.cnf
mariadb-install-db --defaults-file="$REFIT_DIR/my.cnf" --auth-root-authentication-method=socket \
	--auth-root-socket-user="$(id -un)" --skip-test-db >setup.log 2>&1 || { cat setup.log >&2; exit 1; }
