//! redis on a Debian that systemd boots: what is in effect is asked of the server itself.

use crate::apply_booted::{LIBRARY, booted, debian, files, inside, up};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message};

pub const TESTS: &[Test] = &[test!(redis_is_changed_verified_and_taken_back)
    .alone()
    .when_named()
    .limit_seconds(300)];

fn cli(env: &TestEnv, words: &[&str]) -> String {
    let printed = inside(env, 0, &[&["redis-cli"], words].concat());
    printed.trim().replace('\n', " ")
}

fn pid(env: &TestEnv) -> String {
    let words = [
        "systemctl",
        "show",
        "-p",
        "MainPID",
        "--value",
        "redis-server",
    ];
    inside(env, 0, &words)
}

fn redis_is_changed_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    let before = files(env);
    let main = pid(env);
    cli(env, &["SET", "word", "kept"]);
    let check = ["refit", "status", "--exit-code", "redis"];
    let revert = ["refit", "revert", "redis"];
    let get = |name: &str| cli(env, &["CONFIG", "GET", name]);

    // By CONFIG SET, and a file: the service is not restarted, and has it after a restart.
    let apply = [
        "refit",
        "apply",
        "--yes",
        "redis",
        "conf.maxmemory=1gb",
        "conf.save=60 7",
    ];
    let risk = ["--accept=loses-on-crash", "--no-evidence"];
    let apply = [&apply[..], &risk].concat();
    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    assert_eq!(get("maxmemory"), "maxmemory 1073741824");
    assert_eq!(pid(env), main, "it was not restarted");
    inside(env, 0, &["systemctl", "restart", "redis-server"]);
    assert_eq!(get("save"), "save 60 7");
    let status = inside(env, 0, &check);
    assert!(
        status.contains("loses-on-crash, without evidence"),
        "{status}"
    );
    // An administrator's value is drift, and stays when the change is taken back.
    cli(env, &["CONFIG", "SET", "maxmemory", "5000000"]);
    let drift = inside(env, 1, &check);
    assert!(
        drift.contains("expected 1073741824, found 5000000"),
        "{drift}"
    );
    inside(env, 3, &apply);
    let config = "/etc/redis/redis.conf";
    inside(env, 0, &["cp", "-p", config, "/root/kept"]);
    cli(env, &["CONFIG", "REWRITE"]);
    inside(env, 3, &revert);
    assert_eq!(get("save"), "save 60 7");
    inside(env, 0, &["mv", "/root/kept", config]);
    inside(env, 0, &revert);
    assert_eq!(get("save"), "save 3600 1 300 100 60 10000");
    assert_eq!(get("maxmemory"), "maxmemory 5000000");
    cli(env, &["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(files(env), before);

    // With a restart, of a server that has no append-only file yet: nothing of it is lost.
    let all = [
        "conf.appendonly=yes",
        "conf.appendfsync=always",
        "conf.databases=4",
        LIBRARY,
    ];
    let apply = [&["refit", "apply", "--yes", "redis"], &all[..]].concat();
    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    assert_eq!(get("append[fo]*sync"), "appendfsync always");
    assert_eq!(get("databases"), "databases 4");
    assert_eq!(cli(env, &["GET", "word"]), "kept");
    let status = inside(env, 0, &check);
    assert!(
        status.contains("ok: executable mapping /usr/lib/refit/"),
        "{status}"
    );
    inside(env, 0, &["systemctl", "restart", "redis-server"]);
    assert_eq!(cli(env, &["GET", "word"]), "kept");
    inside(env, 0, &revert);
    assert_eq!(get("appendonly"), "appendonly no");
    assert_eq!(get("databases"), "databases 16");
    assert_eq!(cli(env, &["GET", "word"]), "kept");
    assert_eq!(files(env), before);

    // What redis refuses is refused before anything is edited.
    let main = pid(env);
    // redis 8 takes it for a module's.
    let unknown = match debian(env) {
        12 => "Bad directive",
        _ => "Unresolved Configuration(s) Detected:; >>> 'nosuch 1'",
    };
    for (setting, named) in [
        ("conf.maxmemory=1xb", "argument must be a memory value"),
        ("conf.nosuch=1", unknown),
        ("conf.appendfsync=often", "must be one of the following"),
    ] {
        let accepted = ["x", "refit", "apply", "--yes", "redis", setting];
        let words = [&accepted[..], &risk].concat();
        expect_message(&booted(env, &words), 2, named);
    }
    assert_eq!((pid(env), files(env)), (main, before));
    inside(
        env,
        0,
        &[
            "sh",
            "-c",
            "! ls -d /run/refit-redis-* && redis-cli DEL word",
        ],
    );
    Outcome::Pass
}
