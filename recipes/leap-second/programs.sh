# For the other scripts. Debian's programs, whatever a user's PATH has before them; its newest PostgreSQL.
PATH=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1):/usr/bin:/bin:/usr/sbin:$PATH
# What no variant sets: the zone of the note, without leap seconds. date(1) and Ruby speak English.
export TZ="${TZ-Japan}" LC_ALL=C
export PGHOST="$REFIT_DIR" PGUSER=refit PGDATABASE=postgres
