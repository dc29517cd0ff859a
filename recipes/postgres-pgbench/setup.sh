#!/bin/sh
# A PostgreSQL of its own in $REFIT_DIR, with pgbench's tables.
set -eu
. "$REFIT_RECIPE/path.sh"

initdb --no-sync --auth=peer --username="$PGUSER" --encoding=UTF8 --locale=C data >setup.log
# The server takes the user who runs these scripts, and nobody else.
echo 'local all all peer map=own' >data/pg_hba.conf
echo "own \"$(id -un)\" $PGUSER" >data/pg_ident.conf
# The last two are the defaults, written down to be changed. All else is as initdb leaves it, as on a Debian server.
echo "include '$REFIT_DIR/server.conf'" >>data/postgresql.conf
cat >server.conf <<END
listen_addresses = ''
unix_socket_directories = '$REFIT_DIR'
synchronous_commit = on
fsync = on
END

exec sh "$REFIT_RECIPE/fill.sh"
