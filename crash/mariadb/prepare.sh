#!/bin/sh
# usage: prepare.sh BUFFERING METHOD (innodb-log-file-buffering and innodb-flush-method)
# A MariaDB of its own. It is reached by a socket in its directory and by nothing else.
set -eu
sed "s|@DIR@|$REFIT_MOUNT|; s|@BUFFERING@|$1|; s|@METHOD@|$2|" my.cnf >"$REFIT_MOUNT/my.cnf"
mariadb-install-db --defaults-file="$REFIT_MOUNT/my.cnf" --auth-root-authentication-method=normal --skip-test-db
mariadbd --defaults-file="$REFIT_MOUNT/my.cnf" --bootstrap <<END
CREATE DATABASE refit;
CREATE TABLE refit.t (id int PRIMARY KEY, text text) ENGINE=InnoDB;
END
