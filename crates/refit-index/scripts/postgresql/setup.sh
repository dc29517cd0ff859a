#!/bin/sh
# A PostgreSQL of its own in $REFIT_DIR, with the copy of the database. The copy belongs to a role that may do nothing
# else: what a database defines does not run as the superuser.
set -eu
umask 077
. "$REFIT_RECIPE/server.sh"
initdb --no-sync --auth=peer --username="$PGUSER" --encoding=UTF8 --locale=C data >setup.log
# The server takes the user who runs these scripts, and nobody else.
echo 'local all all peer map=own' >data/pg_hba.conf
printf 'own "%s" %s\n' "$(id -un)" "$PGUSER" "$(id -un)" copy >data/pg_ident.conf
cat >>data/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$REFIT_DIR'
# The tables and their indexes fit: a plan that reads every row reads memory, and not a disk.
shared_buffers = 256MB
max_wal_size = 2GB
# VACUUM and ANALYZE come from the recipe, and never within a window.
autovacuum = off
# One process reads a table, as one customer waits for it: the machine's number of processors changes no plan.
max_parallel_workers_per_gather = 0
END
# Nothing is measured yet: no syncs, and little WAL.
pg_ctl -D data -l setup.log -o '-F -c wal_level=minimal -c max_wal_senders=0' -w start >/dev/null
status=0
sh "$REFIT_RECIPE/restore.sh" >&2 || status=$?
pg_ctl -D data -m fast -w stop >/dev/null
exit $status
