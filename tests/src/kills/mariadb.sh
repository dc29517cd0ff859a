# Its log is opened with O_DSYNC. What clients print is whole lines, since one file takes it from all (--unbuffered).
export TMPDIR=$PWD
as='setpriv --reuid=mysql --regid=mysql --init-groups'
sql="mariadb --no-defaults --socket=$PWD/socket -BN --unbuffered test"
options="--no-defaults --datadir=$PWD/data --socket=$PWD/socket --pid-file=$PWD/pid --tmpdir=$PWD --skip-networking \
    --skip-grant-tables --innodb-use-native-aio=0 --innodb-flush-method=O_DSYNC --innodb-log-file-size=16M"

prepare() {
    chown mysql .
    mkdir data
    chown mysql data
    mariadb-install-db --no-defaults --user=mysql --datadir="$PWD/data" --auth-root-authentication-method=normal \
        >install.log 2>&1
    start_bare
    mariadb --no-defaults --socket="$PWD/socket" -e 'CREATE DATABASE IF NOT EXISTS test'
    $sql -e 'CREATE TABLE t (id VARCHAR(40)) ENGINE=InnoDB'
    stop
}

start_bare() {
    $as mariadbd $options 2>>bare.log &
    ready
}

serve() {
    exec $as mariadbd $options 2>>server.log
}

ready() {
    until [ -e pid ] && mariadb-admin --no-defaults --socket="$PWD/socket" ping >/dev/null 2>&1; do sleep 0.05; done
}

rows() {
    n=0
    until [ -e enough ]; do
        n=$((n + 1))
        echo "INSERT INTO t VALUES ('$1 $n'); SELECT '$1 $n';"
    done
}

load() {
    all=
    for client in 1 2 3 4; do
        rows "$1 $client" | $sql &
        all="$all $!"
    done
    for client in $all; do wait "$client"; done
}

stop() {
    pid=$(cat pid)
    kill "$pid"
    while [ -e "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; do sleep 0.05; done
}

found() {
    start_bare
    $sql -e 'SELECT id FROM t'
    stop
}
