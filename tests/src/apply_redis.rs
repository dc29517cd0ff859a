//! `refit apply` on a redis server of a tree (`--root`).

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed, refit_path};

pub const TESTS: &[Test] = &[
    test!(redis_is_changed_and_taken_back),
    test!(a_limit_of_file_size_leaves_all_as_it_was).limit_seconds(180),
    test!(what_is_no_plain_file_is_refused),
];

pub const CONFIG: &str = "etc/redis/redis-one.conf";
pub const OWN: &str = "etc/redis/redis-one.refit.conf";
pub const UNIT: &str = "etc/systemd/system/redis-server@one.service.d/90-refit.conf";
pub const APPLY: [&str; 4] = [
    "--yes",
    "redis-server@one",
    SETTINGS[0],
    "conf.maxmemory=1gb",
];

/// Fails where redis.conf includes refit's file and that is not there.
pub fn what_is_included_is_there(root: &str) {
    let config = fs::read_to_string(Path::new(root).join(CONFIG)).expect("the tree is ours");
    let is_there = Path::new(root).join(OWN).exists();
    assert!(is_there || !config.contains(OWN), "{config}");
}

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
        (&["redis-server@one", "odirect=off"], "conf.NAME="),
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
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);

    // As CONFIG REWRITE would.
    fs::write(
        Path::new(&root).join(CONFIG),
        config.clone() + "maxmemory 1gb\n",
    )
    .expect("ours");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1);
    expect_code(&env.refit(&revert), 3);
    fs::write(Path::new(&root).join(CONFIG), config).expect("ours");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// As a full disk: each file in turn cannot be written.
fn a_limit_of_file_size_leaves_all_as_it_was(env: &TestEnv) -> Outcome {
    env.require_command("prlimit");
    let root = tree(env, "tree");
    let mut before = listing(&root);
    let revert = ["revert", "--root", &root, "redis-server@one"];
    for (step, words) in [(400, &words("apply", &root, &APPLY)[..]), (4, &revert)] {
        let mut refused = 0;
        loop {
            let limit = format!("--fsize={}", refused * step);
            let refit = refit_path();
            let all = [&["prlimit", &limit, &refit], words].concat();
            let output = env.run(&all);
            if output.status.success() {
                break;
            }
            expect_message(&output, 2, "File too large");
            assert_eq!(listing(&root), before, "{limit}");
            refused += 1;
        }
        assert!(refused > 3);
        before = listing(&root);
    }
    assert_eq!(before, listing(&tree(env, "other")));
    Outcome::Pass
}

fn what_is_no_plain_file_is_refused(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let path = Path::new(&root).join(CONFIG);
    let [one, other] = [path.to_str().expect("text"), &env.path("other")];
    for (make, named) in [
        (&["ln", other, one][..], "hard links"),
        (&["ln", "-s", other, one], "is not a regular file"),
        (&["mkfifo", one], "is not a regular file"),
    ] {
        fs::rename(one, other).expect("ours");
        expect_code(&env.run(make), 0);
        expect_message(&env.refit(&words("apply", &root, &APPLY)), 2, named);
        fs::remove_file(one).expect("ours");
        fs::rename(other, one).expect("ours");
    }
    Outcome::Pass
}
