//! As `apply_booted_kills`, of servers that have data: they answer with all of it after each kill.

use crate::apply_schema::CUSTOMER;
use crate::live::Live;
use crate::live_kills::{Subject, sweep, sweep_of_confirm};
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::Calls;
use crate::test;
use crate::test_env::TestEnv;

macro_rules! psql {
    ($database:literal, $sql:literal) => {
        concat!(
            "cd / && setpriv --reuid=postgres --regid=postgres --clear-groups psql -XAtv ON_ERROR_STOP=1 ",
            $database,
            " -c \"",
            $sql,
            "\""
        )
    };
}

macro_rules! mariadb {
    ($connections:literal) => {
        concat!(
            "test \"$(mariadb -BNe 'SELECT @@GLOBAL.max_connections, word FROM kept.words')\" = \"$(printf '",
            $connections,
            "\\tkept')\""
        )
    };
}

/// Logs a line, and waits until it is in its file.
macro_rules! log {
    () => {
        "n=line-$$-$(date +%s%N); logger -p mail.info $n; \
         for i in $(seq 900); do grep -qs $n /var/log/mail.log && exit 0; sleep 0.1; done; exit 1"
    };
}

pub const TESTS: &[Test] = &[
    test!(killed_while_a_cluster_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_a_cluster_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_a_cluster_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_an_index_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_an_index_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_an_index_of_a_server_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_an_index_of_a_server_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_an_index_of_mariadb_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_an_index_of_mariadb_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_mariadb_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_mariadb_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_redis_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_redis_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_rsyslog_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_rsyslog_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
];

/// By CONFIG SET, and by a restart.
const REDIS: Subject = Subject {
    service: "redis-server",
    settings: &["malloc=jemalloc", "conf.maxmemory=1gb"],
    within: None,
    files: &[
        "/etc/redis/redis.conf",
        "/etc/redis/redis.refit.conf",
        "/etc/systemd/system/redis-server.service.d/90-refit.conf",
    ],
    runs: "test $(redis-cli PING) = PONG",
    before: "test $(redis-cli CONFIG GET maxmemory | tail -1) = 0 && test $(redis-cli GET word) = kept",
    with: "test $(redis-cli CONFIG GET maxmemory | tail -1) = 1073741824 && test $(redis-cli GET word) = kept && \
           grep -q r-xp.*/usr/lib/refit/ /proc/$(systemctl show -p MainPID --value redis-server)/maps",
};

fn killed_while_redis_is_applied(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    sweep(&live, &REDIS, "apply", Calls::Files)
}

fn killed_while_redis_is_reverted(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    sweep(&live, &REDIS, "revert", Calls::Files)
}

/// By a restart. Its files stay where they are: a unit of the next start takes them back too.
const CLUSTER: Subject = Subject {
    service: "postgresql",
    settings: &["malloc=jemalloc", "conf.work_mem=8MB"],
    within: Some("1h"),
    files: &[
        "/etc/postgresql/15/main/environment",
        "/etc/postgresql/15/main/conf.d/90-refit.conf",
    ],
    runs: psql!("postgres", "SHOW work_mem"),
    before: concat!("test $(", psql!("postgres", "SHOW work_mem"), ") = 4MB"),
    with: concat!("test $(", psql!("postgres", "SHOW work_mem"), ") = 8MB"),
};

fn killed_while_a_cluster_is_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &CLUSTER, "apply", Calls::Files)
}

fn killed_while_a_cluster_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), &CLUSTER, Calls::Files)
}

fn killed_while_a_cluster_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &CLUSTER, "revert", Calls::Files)
}

/// By SET GLOBAL, and by a restart.
const MARIADB: Subject = Subject {
    service: "mariadb",
    settings: &["malloc=jemalloc", "conf.max_connections=200"],
    within: None,
    files: &[
        "/etc/mysql/mariadb.conf.d/90-refit.cnf",
        "/etc/systemd/system/mariadb.service.d/90-refit.conf",
    ],
    runs: "test $(mariadb -BNe 'SELECT word FROM kept.words') = kept",
    before: mariadb!("151"),
    with: concat!(
        mariadb!("200"),
        " && grep -q r-xp.*/usr/lib/refit/ /proc/$(systemctl show -p MainPID --value mariadb)/maps"
    ),
};

fn with_mariadb<'a>(env: &'a TestEnv) -> Live<'a> {
    let live = Live::up(env);
    live.shell(
        "mariadb -e \"DROP DATABASE IF EXISTS kept; CREATE DATABASE kept; \
         CREATE TABLE kept.words AS SELECT 'kept' AS word\"",
    );
    live
}

fn killed_while_mariadb_is_applied(env: &TestEnv) -> Outcome {
    sweep(&with_mariadb(env), &MARIADB, "apply", Calls::Files)
}

fn killed_while_mariadb_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&with_mariadb(env), &MARIADB, "revert", Calls::Files)
}

/// By a restart; a line is logged each time.
const RSYSLOG: Subject = Subject {
    service: "rsyslog",
    settings: &["malloc=jemalloc", "conf.sync=on"],
    within: None,
    files: &[
        "/etc/rsyslog.conf",
        "/etc/rsyslog.d/00-refit.conf",
        "/etc/systemd/system/rsyslog.service.d/90-refit.conf",
    ],
    runs: log!(),
    before: concat!(
        "! grep -q /usr/lib/refit/ /proc/$(systemctl show -p MainPID --value rsyslog)/maps && ",
        log!()
    ),
    with: concat!(
        "grep -q r-xp.*/usr/lib/refit/ /proc/$(systemctl show -p MainPID --value rsyslog)/maps && ",
        log!()
    ),
};

fn killed_while_rsyslog_is_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &RSYSLOG, "apply", Calls::Files)
}

fn killed_while_rsyslog_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &RSYSLOG, "revert", Calls::Files)
}

/// Of a file of SQLite. The statement is a process of its own, and goes on where refit is killed.
const INDEX: Subject = Subject {
    service: "sqlite:/srv/shop/shop.db/orders",
    settings: &[CUSTOMER],
    within: None,
    files: &[],
    runs: "cd /srv/shop && test $(sqlite3 shop.db 'PRAGMA integrity_check') = ok && \
           test \"$(sqlite3 shop.db 'SELECT count(*), sum(customer_id) FROM orders')\" = '2000|49000'",
    before: "cd /srv/shop && sqlite3 shop.db .dump | cmp - before",
    with: "cd /srv/shop && \
           sqlite3 shop.db \"SELECT sql FROM sqlite_schema WHERE type = 'index'\" | grep -q 'customer.*(.*customer_id.*)'",
};

fn with_index<'a>(env: &'a TestEnv) -> Live<'a> {
    let live = Live::up(env);
    live.shell(
        "rm -rf /srv/shop && mkdir /srv/shop && cd /srv/shop && sqlite3 -bail shop.db \
         'CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL); \
          WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) \
          INSERT INTO orders SELECT i, i % 50 FROM n' && sqlite3 shop.db .dump >before",
    );
    live
}

fn killed_while_an_index_is_applied(env: &TestEnv) -> Outcome {
    sweep(&with_index(env), &INDEX, "apply", Calls::FilesAndStarts)
}

fn killed_while_an_index_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&with_index(env), &INDEX, "revert", Calls::FilesAndStarts)
}

/// Of PostgreSQL, which makes and drops it while the table is used.
const INDEX_OF_SERVER: Subject = Subject {
    service: "postgresql@15-main/shop/orders",
    settings: &[CUSTOMER],
    within: None,
    files: &[],
    runs: concat!(
        "test $(",
        psql!("shop", "SELECT count(*), sum(customer_id) FROM orders"),
        ") = '2000|49000'"
    ),
    before: concat!(
        "test -z \"$(",
        psql!(
            "shop",
            "SELECT indexrelid FROM pg_index WHERE indrelid = 'orders'::regclass"
        ),
        ")\""
    ),
    with: concat!(
        "test $(",
        psql!(
            "shop",
            "SELECT indisvalid AND indisready FROM pg_index WHERE indexrelid = 'customer'::regclass"
        ),
        ") = t"
    ),
};

fn with_index_of_server<'a>(env: &'a TestEnv) -> Live<'a> {
    let live = Live::up(env);
    live.shell(psql!("postgres", "DROP DATABASE IF EXISTS shop"));
    live.shell(psql!("postgres", "CREATE DATABASE shop"));
    live.shell(psql!(
        "shop",
        "CREATE TABLE orders AS SELECT n AS id, n % 50 AS customer_id FROM generate_series(1, 2000) n"
    ));
    live
}

fn killed_while_an_index_of_a_server_is_applied(env: &TestEnv) -> Outcome {
    let live = with_index_of_server(env);
    sweep(&live, &INDEX_OF_SERVER, "apply", Calls::FilesAndStarts)
}

fn killed_while_an_index_of_a_server_is_reverted(env: &TestEnv) -> Outcome {
    let live = with_index_of_server(env);
    sweep(&live, &INDEX_OF_SERVER, "revert", Calls::FilesAndStarts)
}

/// Of MariaDB, likewise.
const INDEX_OF_MARIADB: Subject = Subject {
    service: "mariadb/shop/orders",
    settings: &[CUSTOMER],
    within: None,
    files: &[],
    runs: "test \"$(mariadb -BNe 'SELECT count(*), sum(customer_id) FROM shop.orders')\" = \"$(printf '2000\\t49000')\"",
    before: "test $(mariadb -BNe \"SELECT count(*) FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = 'shop' AND INDEX_NAME <> 'PRIMARY'\") = 0",
    with: "test $(mariadb -BNe \"SELECT COLUMN_NAME FROM information_schema.STATISTICS \
           WHERE TABLE_SCHEMA = 'shop' AND INDEX_NAME = 'customer'\") = customer_id",
};

fn with_index_of_mariadb<'a>(env: &'a TestEnv) -> Live<'a> {
    let live = Live::up(env);
    live.shell(
        "mariadb -e \"DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; \
         CREATE TABLE shop.orders (id INT PRIMARY KEY, customer_id INT NOT NULL) ENGINE=InnoDB; \
         INSERT INTO shop.orders SELECT seq, seq % 50 FROM seq_1_to_2000\"",
    );
    live
}

fn killed_while_an_index_of_mariadb_is_applied(env: &TestEnv) -> Outcome {
    let live = with_index_of_mariadb(env);
    sweep(&live, &INDEX_OF_MARIADB, "apply", Calls::FilesAndStarts)
}

fn killed_while_an_index_of_mariadb_is_reverted(env: &TestEnv) -> Outcome {
    let live = with_index_of_mariadb(env);
    sweep(&live, &INDEX_OF_MARIADB, "revert", Calls::FilesAndStarts)
}
