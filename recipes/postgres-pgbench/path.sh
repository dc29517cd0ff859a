# Debian keeps each version's server in a directory of its own, out of the PATH. The newest one is taken.
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):$PATH
# A socket in the instance's directory is the only way in.
export PGHOST="$REFIT_DIR" PGUSER=refit PGDATABASE=postgres
