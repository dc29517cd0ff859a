#!/bin/sh
# For the promise: a table for its rows. The server does not run yet.
set -eu
. "$REFIT_RECIPE/path.sh"
# Otherwise the recorded disk would mostly hold empty WAL.
printf 'max_wal_size = 64MB\nmin_wal_size = 32MB\n' >>server.conf
echo 'CREATE TABLE t (id integer PRIMARY KEY, text text);' | postgres --single -D data postgres >>setup.log
