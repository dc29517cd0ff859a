# For the other scripts. Debian keeps each version's programs in a directory of its own, out of the PATH; the newest one
# is taken.
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
# A socket in the instance's directory is the only way in, whatever the caller's variables name.
unset PGHOSTADDR PGPORT PGSERVICE PGSERVICEFILE PGOPTIONS PGPASSWORD PGSSLMODE
export PGHOST="$REFIT_DIR" PGUSER=refit PGDATABASE=template1 PGCLIENTENCODING=UTF8 LC_ALL=C
[ ! -f database ] || PGDATABASE=$(cat database)
client() { psql -XqAt -v ON_ERROR_STOP=1 "$@"; }
