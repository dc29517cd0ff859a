#!/bin/sh
# pgbench's tables. Nothing is measured yet: no syncs, and little WAL.
set -eu
. "$REFIT_RECIPE/path.sh"
pg_ctl -D data -l setup.log -o '-F -c wal_level=minimal -c max_wal_senders=0' -w start >/dev/null
# Four branches for four clients: with fewer, they would wait for one another's row and not for the disk.
pgbench --initialize --scale=4 --quiet 2>>setup.log
pg_ctl -D data -m fast -w stop >/dev/null
