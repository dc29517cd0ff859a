//! Power cuts while `refit apply` and `revert` make and drop indexes, in the crash lab: the records of refit and the
//! database are on the disk that is cut.

use std::fs;

use crate::crash::{bad, crash, mode, require_lab, states};
use crate::points::all_points;
use crate::random::seed;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, refit_path};

pub const TESTS: &[Test] = &[
    test!(sqlite_has_the_index_that_status_names).limit_seconds(600),
    test!(sqlite_with_a_wal_has_the_index_that_status_names).limit_seconds(600),
    test!(postgresql_has_the_index_that_status_names).limit_seconds(900),
    test!(mariadb_has_the_index_that_status_names).limit_seconds(900),
];

/// A database: functions of a shell. `make` and `start` it in `$tree`, `stop` it, `sql` STATEMENT, and `sound`, which
/// prints all definitions, or else what is wrong with the table.
struct Database {
    service: &'static str,
    functions: &'static str,
    /// Of the recorded disk.
    size: &'static str,
    /// Of each mode, where all are wanted; otherwise half of them.
    cuts: usize,
}

const SQLITE: Database = Database {
    service: "sqlite:/srv/shop.db/orders",
    functions: r#"
sql() { sqlite3 -bail "$tree/srv/shop.db" ".timeout 20000" "$1"; }
make() {
    mkdir -p "$tree/srv"
    sql "PRAGMA journal_mode = JOURNAL; CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, \
        created_at TEXT NOT NULL, status INTEGER NOT NULL); INSERT INTO orders WITH RECURSIVE n(i) AS \
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i, i % 50, i, 0 FROM n" >&2
}
start() { :; }
stop() { :; }
sound() { [ "$(sql 'PRAGMA integrity_check')" = ok ] && sql .schema && sql 'SELECT count(*), sum(customer_id) FROM orders'; }
"#,
    size: "64M",
    cuts: 100,
};

/// Without `-F` and the like: a server that is set up as it is by default.
const POSTGRESQL: Database = Database {
    service: "postgresql/shop/orders",
    functions: r#"
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1) version=$(basename "$(dirname "$programs")")
data=$tree/var/lib/postgresql/$version/main
as() { setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; }
# Debian's own psql is a script that looks for this one.
psql() { as "$programs/psql" -XqAtw -h "$tree/run/pg" -v ON_ERROR_STOP=1 -d "$@"; }
sql() { psql shop -c "$1"; }
make() {
    etc=$tree/etc/postgresql/$version/main
    mkdir -p "$etc" "$tree/usr/lib/systemd/system" "$tree/run/pg" "$(dirname "$data")"
    chown postgres "$tree/run/pg" "$(dirname "$data")"
    echo "data_directory = '/var/lib/postgresql/$version/main'" >"$etc/postgresql.conf"
    for unit in postgresql postgresql@; do echo '[Service]' >"$tree/usr/lib/systemd/system/$unit.service"; done
    as "$programs/initdb" --auth=trust --locale=C -E UTF8 --wal-segsize=1 "$data" >&2
    start
    psql postgres -c 'CREATE DATABASE shop'
    sql 'CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL, created_at timestamp NOT NULL, status smallint NOT NULL)'
    sql "INSERT INTO orders SELECT i, i % 50, '2026-01-01', 0 FROM generate_series(1, 5000) i"
    # Its commits are not waited for: those of refit are all the same.
    psql postgres -c 'ALTER DATABASE shop SET synchronous_commit = off'
    stop
}
# The number in a file of before the cut can be another process's by now, and a boot begins with an empty /run.
start() {
    rm -rf "$data/postmaster.pid" "$tree"/run/pg/.s*
    as "$programs/pg_ctl" -D "$data" -s -w -t 120 -l "$data/log" -o "-c listen_addresses= -c unix_socket_directories='$tree/run/pg' -c autovacuum=off" start >&2 || { tail -n 5 "$data/log" >&2; return 1; }
}
stop() { as "$programs/pg_ctl" -D "$data" -s -w -m immediate stop >&2; }
sound() {
    sql 'SELECT count(*), sum(customer_id) FROM orders' &&
        sql "SELECT indexdef, indisvalid FROM pg_indexes JOIN pg_index ON indexrelid = indexname::regclass WHERE tablename = 'orders' ORDER BY 1"
}
"#,
    size: "256M",
    cuts: 40,
};

/// Its log has the default size: with 8 MB the server wrote pages during the test, and MariaDB 10.11.19 does not recover
/// every image of that moment (docs/safety.md).
const MARIADB: Database = Database {
    service: "mariadb/shop/orders",
    functions: r#"
data=$tree/var/lib/mysql socket=$tree/run/mysqld/mysqld.sock
export TMPDIR=$tree/run/mysqld # at its start a server removes the temporary tables of others
sql() { mariadb --no-defaults --user=root --socket="$socket" -BN -e "$1"; }
make() {
    mkdir -p "$tree/usr/lib/systemd/system" "$tree/etc/mysql/mariadb.conf.d" "$data" "$tree/run/mysqld"
    chown mysql "$data" "$tree/run/mysqld"
    printf '[Service]\nExecStart=/usr/sbin/mariadbd\n' >"$tree/usr/lib/systemd/system/mariadb.service"
    mariadb-install-db --no-defaults --user=mysql --auth-root-authentication-method=normal --skip-test-db \
        --datadir="$data" >&2
    start
    sql "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, customer_id int NOT NULL, \
        created_at datetime NOT NULL, status int NOT NULL); \
        INSERT INTO orders SELECT seq, seq % 50, '2026-01-01', 0 FROM seq_1_to_5000"
    stop
}
start() {
    rm -f "$tree"/run/mysqld/*
    mariadbd --no-defaults --user=mysql --skip-networking --datadir="$data" --socket="$socket" --pid-file="$data/pid" \
        --innodb-buffer-pool-size=32M </dev/null >"$data/log" 2>&1 &
    server=$!
    until [ -S "$socket" ] && sql 'SELECT 1' >/dev/null 2>&1; do
        kill -0 $server 2>/dev/null || { cat "$data/log" >&2; return 1; }
        sleep 0.05
    done
}
stop() { kill -9 $server; wait $server || :; }
sound() {
    checked=$(sql 'CHECK TABLE shop.orders EXTENDED' 2>&1) || :
    case $checked in *status*OK) ;; *) echo "CHECK TABLE: $checked" && tail -n 20 "$data/log" && return 1;; esac
    sql 'SELECT count(*), sum(customer_id) FROM shop.orders' && sql 'SHOW CREATE TABLE shop.orders' | sed 's/ AUTO_INCREMENT=[0-9]*//'
}
"#,
    size: "400M",
    cuts: 40,
};

/// Each step is acknowledged; marks tell that an apply (`n`) or a revert (`m`) may have begun.
const STEPS: &str = r#"
start
i=0
while [ $i -lt 4 ]; do
    i=$((i + 1))
    : >"$REFIT_MOUNT/n$i"; sync "$REFIT_MOUNT/n$i" "$REFIT_MOUNT"
    REFIT apply --root "$tree" --yes SERVICE conf.index.customer=customer_id 'conf.index.newest=status,created_at DESC' >&2
    echo a$i
    : >"$REFIT_MOUNT/m$i"; sync "$REFIT_MOUNT/m$i" "$REFIT_MOUNT"
    REFIT revert --root "$tree" SERVICE >&2
    echo r$i
done
stop
"#;

/// Approves a state, or tells why not in a file of its own.
const CHECK: &str = r#"
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
bad() { echo "$*" >>NOTES; exit 1; }
start 2>"$own/start" || bad "it does not start: $(cat "$own/start")"
REFIT status --exit-code --root "$tree" SERVICE >"$own/status" 2>&1 && code=0 || code=$?
case $(grep '^[^ ].*/orders: ' "$own/status") in
'') state=none;;
*': applied') state=applied;;
*interrupted*) state=interrupted;;
*) bad "status: $(cat "$own/status")";;
esac
echo $state >>SEEN
last=$(tail -n 1 "$REFIT_ACKED")
case $last in
a*) [ $state = applied ] || [ -e "$REFIT_MOUNT/m${last#a}" ] || bad "after $last it is $state";;
r*) [ $state = none ] || [ -e "$REFIT_MOUNT/n$((${last#r} + 1))" ] || bad "after $last it is $state";;
esac
case $state in
none) [ "$(sound)" = "$(cat PRISTINE)" ] || bad "after $last nothing is applied, and there is: $(sound 2>&1)";;
applied) [ $code = 0 ] || [ -e "$REFIT_MOUNT/m${last#a}" ] || bad "after $last: $(cat "$own/status")";;
esac
revert() { REFIT revert --root "$tree" SERVICE >"$own/told" 2>&1; }
# What refit asks a person to type.
typed() {
    statement=$(sed -n 's/.*by a copy of the table: //p' "$own/told")
    [ -n "$statement" ] && echo copied >>SEEN && sql "$statement" 2>>"$own/told" && revert
}
[ $state = none ] || revert || typed || typed || bad "revert of $state: $(cat "$own/told")"
[ "$(sound)" = "$(cat PRISTINE)" ] || bad "after $last, $state and reverted, there is: $(sound 2>&1)"
[ -z "$(find "$tree/var/lib/refit/changes" -name '[!.]*.json' 2>/dev/null)" ] || bad "left: $(ls "$tree/var/lib/refit/changes")"
stop
cat "$REFIT_ACKED"
"#;

/// What the checks told, printed where the test fails.
struct Notes(String);

impl Drop for Notes {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", fs::read_to_string(&self.0).unwrap_or_default());
        }
    }
}

fn cut(env: &TestEnv, database: &Database, journal: &str) -> Outcome {
    require_lab(env);
    let refit = refit_path();
    let notes = Notes(env.path("notes"));
    let script = |name: &str, root: &str, text: &str| {
        let text = format!("tree={root}/tree\n{}{text}", database.functions)
            .replace("SERVICE", database.service)
            .replace("JOURNAL", journal)
            .replace("NOTES", &notes.0)
            .replace("SEEN", &env.path("seen"))
            .replace("PRISTINE", &env.path("pristine"))
            .replace("REFIT ", &format!("{refit} "));
        format!("sh -e {}", env.file(name, &text))
    };
    let prepare = script(
        "make.sh",
        "$REFIT_MOUNT",
        "make; start; sound >PRISTINE; stop",
    );
    let steps = script("steps.sh", "$REFIT_MOUNT", STEPS);
    let check = script("check.sh", "$REFIT_MOUNT", CHECK);
    let cuts = if all_points() {
        database.cuts
    } else {
        database.cuts / 2
    };
    let seed = seed().to_string();
    let words = [
        "--prepare",
        &prepare,
        "--check",
        &check,
        "--ack",
        "fd:1",
        "--size",
        database.size,
        // What is not synced does not reach the disk by the journal's timer during the run.
        "--mount-options",
        "commit=300",
        "--cuts",
        &cuts.to_string(),
        "--seed",
        &seed,
        "sync=off",
        "--",
        "sh",
        "-c",
        &steps,
    ];
    let report = crash(env, 0, &words);
    let baseline = mode(&report, "baseline");
    assert_eq!(bad(baseline), 0);
    // Without syncs the check sees what is lost.
    let without = mode(&report, "sync=off");
    assert!(bad(without) > 0, "none of {}", states(without).len());
    let seen = fs::read_to_string(env.path("seen")).expect("each check tells");
    let count = |word| seen.lines().filter(|line| *line == word).count();
    let copied = count("copied");
    let kinds = ["none", "applied", "interrupted"].map(|word| (word, count(word)));
    println!(
        "counted: seed {seed}; {} states of the baseline, none bad; without syncs {} of {}; status: {kinds:?}; {copied} times \
         the table had to be copied by hand",
        states(baseline).len(),
        bad(without),
        states(without).len()
    );
    assert!(kinds.iter().all(|(_, count)| *count > 0), "{kinds:?}");
    Outcome::Pass
}

fn sqlite_has_the_index_that_status_names(env: &TestEnv) -> Outcome {
    env.require_command("sqlite3");
    cut(env, &SQLITE, "delete")
}

fn sqlite_with_a_wal_has_the_index_that_status_names(env: &TestEnv) -> Outcome {
    env.require_command("sqlite3");
    cut(env, &SQLITE, "wal")
}

fn postgresql_has_the_index_that_status_names(env: &TestEnv) -> Outcome {
    env.require_command("psql");
    cut(env, &POSTGRESQL, "")
}

fn mariadb_has_the_index_that_status_names(env: &TestEnv) -> Outcome {
    env.require_command("mariadbd");
    cut(env, &MARIADB, "")
}
