#!/bin/sh
# A PostgreSQL of its own. It is reached by a socket in its directory and by nothing else.
set -eu
. ./path.sh
mkdir "$PGDATA"
chown postgres "$PGDATA"
$AS_POSTGRES initdb --no-sync --auth=trust --encoding=UTF8 --locale=C
cat >>"$PGDATA/postgresql.conf" <<END
listen_addresses = ''
unix_socket_directories = '$PGDATA'
# Else the disk would mostly hold empty WAL.
max_wal_size = 64MB
min_wal_size = 32MB
END
echo 'CREATE TABLE t (id integer PRIMARY KEY, text text);' | $AS_POSTGRES postgres --single -D "$PGDATA" postgres
