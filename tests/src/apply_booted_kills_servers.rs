//! As `apply_booted_kills`, of servers that have data: they answer with all of it after each kill.

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
    test!(killed_while_redis_is_applied)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_redis_is_reverted)
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
