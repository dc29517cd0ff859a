#!/bin/sh
# For the promise: a table for its rows. The server does not run yet.
set -eu
mariadbd --defaults-file="$REFIT_DIR/my.cnf" --bootstrap <<END
CREATE DATABASE promise;
CREATE TABLE promise.t (id int PRIMARY KEY, text text) ENGINE=InnoDB;
END
