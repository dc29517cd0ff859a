#!/bin/sh
# The copy in the server that runs: tables, their rows and indexes, views, functions. Whose they are, who may read them
# and whom they are sent to stays out.
set -eu
. "$REFIT_RECIPE/server.sh"
copy="$REFIT_RECIPE/data.pgdump"
pg_restore -l -C "$copy" >list
out='COMMENT|ACL|DEFAULT ACL|POLICY|ROW SECURITY|EVENT TRIGGER|PUBLICATION|PUBLICATION TABLE|PUBLICATION TABLES IN SCHEMA|SUBSCRIPTION|SECURITY LABEL'
part() { grep -E "^[0-9]+; [0-9]+ [0-9]+ ($1) " list >"list.$2" || true; }
part 'DATABASE|DATABASE PROPERTIES' database
part 'SCHEMA' schemas
part 'EXTENSION' extensions
grep -vE "^(;|[0-9]+; [0-9]+ [0-9]+ (DATABASE|DATABASE PROPERTIES|SCHEMA|EXTENSION|$out) )" list >list.rest || true
restore() { # FILE ROLE OPTION…: what the file lists, as the role
	what=$1 role=$2
	shift 2
	[ ! -s "$what" ] ||
		pg_restore --exit-on-error --no-owner --no-privileges --no-comments --no-tablespaces -U "$role" -L "$what" "$@" "$copy"
}
client -c 'CREATE ROLE copy LOGIN CREATEDB' -c 'DROP DATABASE postgres'
restore list.database copy -C -d template1
name=$(sed -n 's/^; *dbname: //p' list | head -n 1)
restore list.schemas copy -d "$name"
restore list.extensions refit -d "$name"
restore list.rest copy -d "$name"
printf '%s\n' "$name" >database
PGDATABASE=$name
client -c 'VACUUM ANALYZE'
