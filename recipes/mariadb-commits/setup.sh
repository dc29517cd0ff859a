#!/bin/sh
# A MariaDB of its own in $REFIT_DIR. It listens on a socket there and nowhere else.
set -eu
sed "s|@DIR@|$REFIT_DIR|" "$REFIT_RECIPE/my.cnf" >my.cnf
mariadb-install-db --defaults-file="$REFIT_DIR/my.cnf" --auth-root-authentication-method=normal --skip-test-db \
	>setup.log 2>&1 || { cat setup.log >&2; exit 1; }
