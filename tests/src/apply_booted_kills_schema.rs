//! As `apply_booted_kills`, of an index: the rows are all there after each kill.

use crate::apply_booted::debian;
use crate::apply_booted_kills_servers::psql;
use crate::apply_schema::CUSTOMER;
use crate::live::Live;
use crate::live_kills::{Subject, sweep};
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::Calls;
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
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
];

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

const INDEX_OF_17: Subject = Subject {
    service: "postgresql@17-main/shop/orders",
    ..INDEX_OF_SERVER
};

fn index_of_server(env: &TestEnv) -> &'static Subject {
    match debian(env) {
        12 => &INDEX_OF_SERVER,
        _ => &INDEX_OF_17,
    }
}

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
    sweep(&live, index_of_server(env), "apply", Calls::FilesAndStarts)
}

fn killed_while_an_index_of_a_server_is_reverted(env: &TestEnv) -> Outcome {
    let live = with_index_of_server(env);
    sweep(&live, index_of_server(env), "revert", Calls::FilesAndStarts)
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
