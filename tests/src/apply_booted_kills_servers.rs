//! As `apply_booted_kills`, of servers that have data: they answer with all of it after each kill.

use crate::apply_booted::debian;
use crate::live::Live;
use crate::live_kills::{Subject, sweep, sweep_of_confirm, sweep_of_timer};
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
pub(crate) use psql;

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
    test!(killed_while_mariadb_is_applied_until_confirmed)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_mariadb_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_mariadb_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_mariadb_takes_itself_back)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_redis_is_applied_until_confirmed)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_redis_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_redis_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_redis_takes_itself_back)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_rsyslog_is_applied_until_confirmed)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_rsyslog_is_reverted)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(killed_while_rsyslog_is_confirmed)
        .alone()
        .when_named()
        .limit_seconds(3600),
    test!(killed_while_rsyslog_takes_itself_back)
        .alone()
        .when_named()
        .limit_seconds(3600),
];

/// By CONFIG SET, and by a restart.
pub const REDIS: Subject = Subject {
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

fn killed_while_redis_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    sweep(&live, &REDIS_UNTIL_CONFIRMED, "apply", Calls::Files)
}

fn killed_while_redis_is_reverted(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    sweep(&live, &REDIS, "revert", Calls::Files)
}

/// The drop-in lies below /run until then; redis.conf is as it will stay, and a unit of the next start takes it back too.
const REDIS_UNTIL_CONFIRMED: Subject = Subject {
    within: Some("1h"),
    files: &[
        "/etc/redis/redis.conf",
        "/etc/redis/redis.refit.conf",
        "/etc/systemd/system/redis-server.service.d/90-refit.conf",
        "/run/systemd/system/redis-server.service.d/90-refit.conf",
    ],
    ..REDIS
};

fn killed_while_redis_is_confirmed(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    sweep_of_confirm(&live, &REDIS_UNTIL_CONFIRMED, Calls::Files)
}

fn killed_while_redis_takes_itself_back(env: &TestEnv) -> Outcome {
    let live = Live::up(env);
    live.shell("redis-cli SET word kept");
    sweep_of_timer(&live, &REDIS_UNTIL_CONFIRMED, Calls::Files)
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

const CLUSTER_OF_17: Subject = Subject {
    files: &[
        "/etc/postgresql/17/main/environment",
        "/etc/postgresql/17/main/conf.d/90-refit.conf",
    ],
    ..CLUSTER
};

fn cluster(env: &TestEnv) -> &'static Subject {
    match debian(env) {
        12 => &CLUSTER,
        _ => &CLUSTER_OF_17,
    }
}

fn killed_while_a_cluster_is_applied(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), cluster(env), "apply", Calls::Files)
}

fn killed_while_a_cluster_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), cluster(env), Calls::Files)
}

fn killed_while_a_cluster_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), cluster(env), "revert", Calls::Files)
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

fn killed_while_mariadb_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    sweep(
        &with_mariadb(env),
        &MARIADB_UNTIL_CONFIRMED,
        "apply",
        Calls::Files,
    )
}

fn killed_while_mariadb_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&with_mariadb(env), &MARIADB, "revert", Calls::Files)
}

/// As of Redis.
const MARIADB_UNTIL_CONFIRMED: Subject = Subject {
    within: Some("1h"),
    files: &[
        "/etc/mysql/mariadb.conf.d/90-refit.cnf",
        "/etc/systemd/system/mariadb.service.d/90-refit.conf",
        "/run/systemd/system/mariadb.service.d/90-refit.conf",
    ],
    ..MARIADB
};

fn killed_while_mariadb_is_confirmed(env: &TestEnv) -> Outcome {
    let live = with_mariadb(env);
    sweep_of_confirm(&live, &MARIADB_UNTIL_CONFIRMED, Calls::Files)
}

fn killed_while_mariadb_takes_itself_back(env: &TestEnv) -> Outcome {
    let live = with_mariadb(env);
    sweep_of_timer(&live, &MARIADB_UNTIL_CONFIRMED, Calls::Files)
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

fn killed_while_rsyslog_is_applied_until_confirmed(env: &TestEnv) -> Outcome {
    sweep(
        &Live::up(env),
        &RSYSLOG_UNTIL_CONFIRMED,
        "apply",
        Calls::Files,
    )
}

fn killed_while_rsyslog_is_reverted(env: &TestEnv) -> Outcome {
    sweep(&Live::up(env), &RSYSLOG, "revert", Calls::Files)
}

/// As of Redis.
const RSYSLOG_UNTIL_CONFIRMED: Subject = Subject {
    within: Some("1h"),
    files: &[
        "/etc/rsyslog.conf",
        "/etc/rsyslog.d/00-refit.conf",
        "/etc/systemd/system/rsyslog.service.d/90-refit.conf",
        "/run/systemd/system/rsyslog.service.d/90-refit.conf",
    ],
    ..RSYSLOG
};

fn killed_while_rsyslog_is_confirmed(env: &TestEnv) -> Outcome {
    sweep_of_confirm(&Live::up(env), &RSYSLOG_UNTIL_CONFIRMED, Calls::Files)
}

fn killed_while_rsyslog_takes_itself_back(env: &TestEnv) -> Outcome {
    sweep_of_timer(&Live::up(env), &RSYSLOG_UNTIL_CONFIRMED, Calls::Files)
}
