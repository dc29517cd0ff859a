//! MariaDB on a Debian that systemd boots: what is in effect is asked of the server itself.

use crate::apply_booted::{LIBRARY, booted, files, inside, up};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message};

pub const TESTS: &[Test] = &[test!(mariadb_is_changed_verified_and_taken_back)
    .alone()
    .when_named()
    .limit_seconds(300)];

fn sql(env: &TestEnv, statement: &str) -> String {
    let printed = inside(env, 0, &["mariadb", "-BNe", statement]);
    printed.trim().replace('\t', " ")
}

fn pid(env: &TestEnv) -> String {
    let words = ["systemctl", "show", "-p", "MainPID", "--value", "mariadb"];
    inside(env, 0, &words)
}

fn mariadb_is_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let main = pid(env);
    let check = ["refit", "status", "--exit-code", "mariadb"];
    let revert = ["refit", "revert", "mariadb"];
    let values =
        "SELECT @@innodb_flush_log_at_trx_commit, @@GLOBAL.max_connections, @@innodb_flush_method";
    assert_eq!(sql(env, values), "1 151 O_DIRECT");

    // By SET GLOBAL, and a file: not restarted, and kept by a restart.
    let dynamic = [
        "conf.innodb_flush_log_at_trx_commit=2",
        "conf.max-connections=200",
    ];
    let risk = ["--accept=bounded-loss", "--no-evidence"];
    let apply = [&["refit", "apply", "--yes", "mariadb"], &dynamic[..], &risk].concat();
    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    assert_eq!(sql(env, values), "2 200 O_DIRECT");
    assert_eq!(pid(env), main, "it was not restarted");
    inside(env, 0, &["systemctl", "restart", "mariadb"]);
    assert_eq!(sql(env, values), "2 200 O_DIRECT");
    let status = inside(env, 0, &check);
    assert!(
        status.contains("bounded-loss, without evidence"),
        "{status}"
    );
    // An administrator's value is drift, and stays when the change is taken back.
    sql(env, "SET GLOBAL max_connections = 300");
    let drift = inside(env, 1, &check);
    assert!(drift.contains("expected 200, found 300"), "{drift}");
    inside(env, 3, &apply);
    inside(env, 0, &revert);
    assert_eq!(sql(env, values), "1 300 O_DIRECT");
    sql(env, "SET GLOBAL max_connections = 151");
    assert_eq!(files(env), before);

    // What is read only takes a restart, there and back.
    let words = [
        "refit",
        "apply",
        "--yes",
        "mariadb",
        "conf.innodb_flush_method=fsync",
        LIBRARY,
    ];
    inside(env, 0, &words);
    assert_eq!(sql(env, values), "1 151 fsync");
    let status = inside(env, 0, &check);
    assert!(
        status.contains("ok: executable mapping /usr/lib/refit/"),
        "{status}"
    );
    inside(env, 0, &revert);
    let words = [
        "refit",
        "apply",
        "--yes",
        "mariadb",
        "conf.innodb_flush_method=fsync",
    ];
    inside(env, 0, &words);
    assert_eq!(sql(env, values), "1 151 fsync");
    inside(env, 0, &revert);
    assert_eq!(sql(env, values), "1 151 O_DIRECT");
    assert_eq!(files(env), before);

    // Refused: unknown ones would keep the server down, and others are silently changed.
    let main = pid(env);
    let refused = |setting: &str, code: i32, named: &str| {
        let words = ["x", "refit", "apply", "--yes", "mariadb", setting];
        let words = [&words[..], &["--accept=loses-on-crash", "--no-evidence"]].concat();
        expect_message(&booted(env, &words), code, named);
        assert_eq!(files(env), before, "{setting}");
    };
    refused("conf.nosuch=1", 2, "unknown variable");
    refused("conf.innodb_flush_log_at_trx_commit=9", 2, "adjusted to 3");
    refused("conf.max_connections=x", 2, "Unknown suffix");
    refused(
        "conf.innodb_flush_method=none",
        2,
        "Error while setting value",
    );
    refused("conf.innodb_flush_log_at_trx=2", 2, "a shortened one");
    let later = "/etc/mysql/mariadb.conf.d/95-own.cnf";
    inside(
        env,
        0,
        &[
            "sh",
            "-c",
            "printf '[mysqld]\nmax_connections=77\n' >$0",
            later,
        ],
    );
    let words = [
        "x",
        "refit",
        "apply",
        "--yes",
        "mariadb",
        "conf.max_connections=200",
    ];
    expect_message(
        &booted(env, &words),
        1,
        "max_connections would be 77, not 200",
    );
    inside(env, 0, &["rm", later]);
    assert_eq!((pid(env), files(env)), (main, before.clone()));
    // Right for the checker, and the server does not start with it: it runs as before.
    refused("conf.innodb_page_size=8192", 1, "all was taken back");
    assert_eq!(sql(env, values), "1 151 O_DIRECT");
    Outcome::Pass
}
