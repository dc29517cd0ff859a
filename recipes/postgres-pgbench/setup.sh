#!/bin/sh
# A PostgreSQL of its own in $REFIT_DIR, with pgbench's tables.
set -eu
. "$REFIT_RECIPE/path.sh"

initdb --no-sync --auth=trust --username="$PGUSER" --encoding=UTF8 --locale=C data >setup.log
# The last two are the defaults, written down to be changed. All else is as initdb leaves it, as on a Debian server.
echo "include '$REFIT_DIR/server.conf'" >>data/postgresql.conf
cat >server.conf <<END
listen_addresses = ''
unix_socket_directories = '$REFIT_DIR'
synchronous_commit = on
fsync = on
END

# Nothing is measured yet: no syncs, and little WAL.
pg_ctl -D data -l setup.log -o '-F -c wal_level=minimal -c max_wal_senders=0' -w start >/dev/null
# Four branches for four clients: with fewer, they would wait for one another's row and not for the disk.
pgbench --initialize --scale=4 --quiet 2>>setup.log
pg_ctl -D data -m fast -w stop >/dev/null
