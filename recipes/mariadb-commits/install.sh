#!/bin/sh
# Makes the data directory of my.cnf.
set -eu
mariadb-install-db --defaults-file="$REFIT_DIR/my.cnf" --auth-root-authentication-method=normal --skip-test-db \
	>setup.log 2>&1 || { cat setup.log >&2; exit 1; }
