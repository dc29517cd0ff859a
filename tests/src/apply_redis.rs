//! `refit apply` on a redis server of a tree (`--root`).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[test!(redis_is_changed_and_taken_back)];

pub const CONFIG: &str = "etc/redis/redis-one.conf";
pub const OWN: &str = "etc/redis/redis-one.refit.conf";
pub const UNIT: &str = "etc/systemd/system/redis-server@one.service.d/90-refit.conf";
pub const APPLY: [&str; 4] = [
    "--yes",
    "redis-server@one",
    SETTINGS[0],
    "conf.maxmemory=1gb",
];

/// A tree with an instance of redis; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = crate::apply::tree(env, name);
    let at = |path: &str| Path::new(&root).join(path);
    fs::create_dir_all(at("etc/redis")).expect("the tree is ours");
    let unit =
        "[Service]\nExecStart=-/usr/bin/redis-server /etc/redis/redis-%i.conf --daemonize no\n";
    fs::write(at("usr/lib/systemd/system/redis-server@.service"), unit).expect("likewise");
    // No newline at its end.
    fs::write(at(CONFIG), "port 6379\nmaxmemory 2gb").expect("likewise");
    fs::set_permissions(at(CONFIG), Permissions::from_mode(0o640)).expect("likewise");
    root
}

fn redis_is_changed_and_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    for (rest, named) in [
        (&["redis-server@one", "conf.port=1"][..], "found by it"),
        (
            &["redis-server@one", "conf.appendonly=yes"],
            "would not read its dump",
        ),
        (&["redis-server@one", "conf.maxmemory=1\n"], "not one line"),
        (&["redis-server@one", "sync=off"], "conf.NAME="),
        (
            &["--trial", "redis-server@one", "conf.maxmemory=1"],
            "below /run, and redis",
        ),
        (
            &["redis-server@one", "conf.appendfsync=everysec"],
            "is bounded-loss",
        ),
        (
            &["redis-server@one", "conf.appendfsync=no"],
            "is loses-on-crash",
        ),
        (
            &[
                "redis-server@one",
                "conf.appendfsync=No",
                "conf.maxmemory=1",
            ],
            "is loses-on-crash",
        ),
        (&["redis-server@one", "conf.save="], "is loses-on-crash"),
        (
            &["redis-server@two", "conf.maxmemory=1"],
            "configuration file is not there",
        ),
    ] {
        let all = [&["--yes"], rest].concat();
        expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        assert_eq!(listing(&root), before, "{rest:?}");
    }
    // Without settings of its own it is a unit like any other.
    let trial = ["--yes", "--trial", "redis-server@one", "tz=UTC"];
    expect_code(&env.refit(&words("apply", &root, &trial)), 0);
    let revert = words("revert", &root, &["redis-server@one"]);
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);

    let more = [
        "conf.save=60 \"1\\",
        "--accept=loses-on-crash",
        "--no-evidence",
    ];
    let apply = [&words("apply", &root, &APPLY)[..], &more].concat();
    expect_code(&env.refit(&apply), 0);
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let read = |path: &str| fs::read_to_string(Path::new(&root).join(path)).expect("there");
    let (own, config) = (read(OWN), read(CONFIG));
    let meant = "\nmaxmemory \"1gb\"\nsave \"\"\nsave \"60 \\\"1\\\\\"\n";
    assert!(own.ends_with(meant), "{own}");
    assert!(
        config.starts_with("port 6379\nmaxmemory 2gb\n# preload="),
        "{config}"
    );
    assert!(
        config.ends_with("\ninclude /etc/redis/redis-one.refit.conf\n"),
        "{config}"
    );
    assert!(read(UNIT).contains("LD_PRELOAD=/usr/lib/refit/"));
    assert_eq!(listing(&root)[OWN].0 & 0o777, 0o640);
    expect_code(&env.refit(&words("status", &root, &["--check"])), 0);

    // As CONFIG REWRITE would.
    fs::write(
        Path::new(&root).join(CONFIG),
        config.clone() + "maxmemory 1gb\n",
    )
    .expect("ours");
    expect_code(&env.refit(&words("status", &root, &["--check"])), 1);
    expect_code(&env.refit(&revert), 3);
    fs::write(Path::new(&root).join(CONFIG), config).expect("ours");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}
