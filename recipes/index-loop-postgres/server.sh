# For the other scripts. Debian keeps each version's server in a directory of its own, out of the PATH; the newest one
# is taken.
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
# A socket in the instance's directory is the only way in.
export PGHOST="$REFIT_DIR" PGUSER=refit PGDATABASE=postgres
client() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }
# Rows that setup.sh makes; a run adds its own after them. A check of the recipe itself needs no million.
rows=1000000
[ "$REFIT_OPERATIONS" -ge 1000 ] || rows=100000
