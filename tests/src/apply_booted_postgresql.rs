//! PostgreSQL on a Debian that systemd boots: what is in effect is asked of the server itself.

use crate::apply_booted::{
    LIBRARY, booted, cluster, files, files_of_disk, inside, up, wait_inside,
};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(postgresql_is_changed_verified_and_taken_back)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(what_is_not_confirmed_is_gone_when_the_server_starts_again)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(what_postgresql_does_not_take_up_is_taken_back)
        .alone()
        .when_named()
        .limit_seconds(300),
];

const APPLY: [&str; 10] = [
    "refit",
    "apply",
    "--yes",
    "--accept=bounded-loss",
    "--no-evidence",
    "postgresql",
    LIBRARY,
    "env.WORD=it's",
    "conf.shared_buffers=64MB",
    "conf.synchronous_commit=off",
];

/// What the server answers to these statements, each in a connection of its own.
fn sql(env: &TestEnv, statements: &[&str]) -> String {
    let all = statements.iter().map(|one| {
        let words = ["-u", "postgres", "psql", "-XAtqc", one];
        let output = booted(env, &[&["x"], &words[..]].concat());
        expect_code(&output, 0);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    all.collect::<Vec<_>>().join(" ")
}

fn service(env: &TestEnv) -> String {
    format!("postgresql@{}", cluster(env))
}

/// A file in the cluster's conf.d.
fn conf_d(env: &TestEnv, name: &str) -> String {
    let directory = cluster(env).replace('-', "/");
    format!("/etc/postgresql/{directory}/conf.d/{name}")
}

/// How many of the cluster's processes, of how many, have code of a library of refit's.
fn mapped(env: &TestEnv) -> String {
    let count = "n=0 m=0; for p in $(cat /sys/fs/cgroup/*/$0/cgroup.procs /sys/fs/cgroup/$0/cgroup.procs 2>/dev/null | sort -u); do \
                 n=$((n+1)); ! grep -q r-xp.*/usr/lib/refit/ /proc/$p/maps || m=$((m+1)); done; echo $m of $n";
    let group = inside(
        env,
        0,
        &[
            "systemctl",
            "show",
            "-p",
            "ControlGroup",
            "--value",
            &service(env),
        ],
    );
    inside(env, 0, &["sh", "-c", count, group.trim()])
}

fn pid(env: &TestEnv) -> String {
    inside(
        env,
        0,
        &[
            "systemctl",
            "show",
            "-p",
            "MainPID",
            "--value",
            &service(env),
        ],
    )
}

fn postgresql_is_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let shows = ["SHOW shared_buffers", "SHOW synchronous_commit"];
    assert_eq!(sql(env, &shows), "128MB on");
    assert!(mapped(env).starts_with("0 of 6"), "{}", mapped(env));
    inside(env, 0, &APPLY);
    assert!(inside(env, 0, &APPLY).contains("nothing to do"));
    let check = ["refit", "status", "--exit-code", "postgresql"];
    let status = inside(env, 0, &check);
    for text in [
        "accepted       bounded-loss, without evidence",
        "ok: variable WORD=it's",
    ] {
        assert!(status.contains(text), "{status}");
    }
    assert_eq!(sql(env, &shows), "64MB off");
    let of_all = mapped(env);
    assert!(of_all.starts_with("6 of 6"), "{of_all}");

    // An administrator's setting wins, in the files and then in the server.
    sql(
        env,
        &[
            "ALTER SYSTEM SET synchronous_commit = local",
            "SELECT pg_reload_conf()",
        ],
    );
    let drift = inside(env, 1, &check);
    assert!(drift.contains("postgresql.auto.conf"), "{drift}");
    inside(env, 3, &APPLY);
    sql(
        env,
        &[
            "ALTER SYSTEM RESET synchronous_commit",
            "SELECT pg_reload_conf()",
        ],
    );
    inside(env, 0, &check);
    // His line in refit's file stops the revert.
    let conf = &*conf_d(env, "90-refit.conf");
    inside(
        env,
        0,
        &["sh", "-c", "cp -p $0 /root/kept; echo '# mine' >>$0", conf],
    );
    inside(env, 1, &check);
    inside(env, 3, &["refit", "revert", "postgresql"]);
    assert_eq!(sql(env, &shows), "64MB off");
    inside(env, 0, &["mv", "/root/kept", conf]);
    inside(env, 0, &["refit", "revert", "postgresql"]);
    assert_eq!(sql(env, &shows), "128MB on");
    assert!(mapped(env).starts_with("0 of 6"));
    assert_eq!(files(env), before);

    // What needs no restart gets none.
    let main = pid(env);
    let apply = [
        "refit",
        "apply",
        "--yes",
        "postgresql",
        "conf.work_mem=8192kB",
    ];
    inside(env, 0, &apply);
    assert_eq!(sql(env, &["SHOW work_mem"]), "8MB");
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    inside(env, 0, &["refit", "revert", "postgresql"]);
    assert_eq!(sql(env, &["SHOW work_mem"]), "4MB");
    assert_eq!(pid(env), main);
    // A cluster that somebody stopped stays so.
    inside(env, 0, &["systemctl", "stop", &service(env)]);
    inside(env, 0, &apply);
    inside(env, 3, &["systemctl", "is-active", &service(env)]);
    inside(env, 0, &["refit", "revert", "postgresql"]);
    inside(env, 3, &["systemctl", "is-active", &service(env)]);
    inside(env, 0, &["systemctl", "start", &service(env)]);
    assert_eq!(files(env), before);
    Outcome::Pass
}

fn what_postgresql_does_not_take_up_is_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let main = pid(env);
    let refused = |setting: &str, code: i32, named: &str| {
        let words = ["x", "refit", "apply", "--yes", "postgresql", setting];
        expect_message(&booted(env, &words), code, named);
        assert_eq!(files(env), before, "{setting}");
        assert_eq!(sql(env, &["SELECT 1"]), "1", "{setting}");
    };
    refused("conf.nosuch=1", 2, "unrecognized configuration parameter");
    refused("conf.wal_sync_method=none", 2, "cannot be applied");
    refused("conf.server_version=1", 2, "cannot be changed");
    sql(env, &["ALTER SYSTEM SET work_mem = '7MB'"]);
    refused("conf.work_mem=8MB", 2, "ALTER SYSTEM RESET work_mem");
    sql(
        env,
        &[
            "ALTER SYSTEM RESET work_mem",
            "ALTER ROLE postgres SET work_mem = '9MB'",
        ],
    );
    refused("conf.work_mem=8MB", 1, "pg_settings work_mem 8192: 9216");
    sql(env, &["ALTER ROLE postgres RESET work_mem"]);
    // A wrong line of somebody else's would keep the cluster down after a restart.
    let wrong = &*conf_d(env, "10-own.conf");
    inside(env, 0, &["sh", "-c", "echo fsync = maybe >$0", wrong]);
    let words = ["x", "refit", "apply", "--yes", "postgresql", "env.A=1"];
    expect_message(
        &booted(env, &words),
        2,
        "parameter \"fsync\" requires a Boolean value",
    );
    inside(env, 0, &["rm", wrong]);
    assert_eq!(pid(env), main, "it was not restarted");
    // Right for the checker, and the server does not start with it.
    refused("conf.shared_buffers=400GB", 1, "all was taken back");
    inside(env, 0, &["systemctl", "is-active", &service(env)]);
    assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
    Outcome::Pass
}

/// The files of PostgreSQL and of redis's own settings lie in /etc: neither server starts with them.
fn what_is_not_confirmed_is_gone_when_the_server_starts_again(env: &TestEnv) -> Outcome {
    up(env);
    let before = files_of_disk(env);
    let apply = |within: &str, words: &[&str]| {
        let within = format!("--confirm-within={within}");
        let all = [&["refit", "apply", "--yes", &within], words].concat();
        inside(env, 0, &all);
    };
    let both = |within| {
        apply(within, &["postgresql", LIBRARY, "conf.shared_buffers=64MB"]);
        apply(within, &["redis", "conf.maxmemory=1gb"]);
    };
    let shown = || {
        let redis = ["redis-cli", "CONFIG", "GET", "maxmemory"];
        let redis = inside(env, 0, &redis);
        format!(
            "{} {}",
            sql(env, &["SHOW shared_buffers"]),
            redis.replace('\n', " ")
        )
    };
    let old = shown();
    assert_eq!(old.trim(), "128MB maxmemory 0");
    let is_old = |env: &TestEnv| {
        assert_eq!(shown(), old);
        assert!(mapped(env).starts_with("0 of 6"), "{}", mapped(env));
        assert_eq!(inside(env, 0, &["refit", "status"]), "nothing is applied\n");
        let now = files_of_disk(env);
        let differs = now
            .lines()
            .filter(|line| !before.lines().any(|was| was == *line));
        assert!(now == before, "{:?}", differs.collect::<Vec<_>>());
    };
    both("1h");
    assert_eq!(shown().trim(), "64MB maxmemory 1073741824");
    inside(env, 0, &["refit", "status", "--exit-code"]);
    expect_code(&booted(env, &["reboot"]), 0);
    is_old(env);
    // The server was started once, with the old ones.
    let starts = inside(env, 0, &["journalctl", "-b", "-o", "cat", "-t", "systemd"]);
    let at = |text: &str| starts.lines().position(|line| line.starts_with(text));
    let service = service(env);
    let undone = at(&format!("Starting refit-undo-{service}-at-boot.service"));
    let server = &format!("Starting {service}.service");
    assert!(undone.is_some() && undone < at(server), "{starts}");
    assert_eq!(starts.matches(&**server).count(), 1, "{starts}");

    both("20s");
    wait_inside(env, "test ! -e /usr/lib/refit");
    wait_inside(env, "test \"$(refit status)\" = 'nothing is applied'");
    is_old(env);

    both("1h");
    for service in ["postgresql", "redis"] {
        inside(env, 0, &["refit", "confirm", service]);
    }
    expect_code(&booted(env, &["reboot"]), 0);
    inside(env, 0, &["refit", "status", "--exit-code"]);
    assert_eq!(shown().trim(), "64MB maxmemory 1073741824");
    for service in ["postgresql", "redis"] {
        inside(env, 0, &["refit", "revert", service]);
    }
    is_old(env);
    Outcome::Pass
}
