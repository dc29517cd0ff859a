# Its write-ahead log is opened with O_DSYNC.
PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH
export PGHOST=$PWD PGUSER=postgres PGDATABASE=postgres
as='setpriv --reuid=postgres --regid=postgres --init-groups'
sql='psql --no-psqlrc -qAt -v ON_ERROR_STOP=1'

prepare() {
    chown postgres .
    $as initdb --no-sync --auth=trust -D data >/dev/null
    printf "listen_addresses = ''\nunix_socket_directories = '%s'\nwal_sync_method = open_datasync\n" "$PWD" \
        >>data/postgresql.conf
    start_bare
    $sql -c 'CREATE TABLE t (id text)'
    stop
}

start_bare() {
    $as pg_ctl -D data -l bare.log -w start >/dev/null
}

serve() {
    exec $as postgres -D data 2>>server.log
}

ready() {
    until [ -e data/postmaster.pid ] && $sql -c 'SELECT 1' >/dev/null 2>&1; do sleep 0.05; done
}

rows() {
    n=0
    until [ -e enough ]; do
        n=$((n + 1))
        echo "INSERT INTO t VALUES ('$1 $n') RETURNING id;"
    done
}

load() {
    all=
    for client in 1 2 3 4; do
        rows "$1 $client" | $sql -f - &
        all="$all $!"
    done
    for client in $all; do wait "$client"; done
}

stop() {
    $as pg_ctl -D data -m fast -w stop >/dev/null
}

found() {
    start_bare
    $sql -c 'SELECT id FROM t'
    stop
}
