# Debian keeps each version's server in a directory of its own, out of the PATH. The newest one is taken.
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
export PGDATA="$REFIT_MOUNT/data" PGHOST="$REFIT_MOUNT/data" PGUSER=postgres PGDATABASE=postgres
# The server refuses to run as root.
AS_POSTGRES="setpriv --reuid=postgres --regid=postgres --clear-groups"
