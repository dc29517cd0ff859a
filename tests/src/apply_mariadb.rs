//! `refit apply` on a MariaDB server of a tree (`--root`).

use std::fs;
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[test!(mariadb_is_changed_and_taken_back)];

pub const FILE: &str = "etc/mysql/mariadb.conf.d/90-refit.cnf";
pub const UNIT: &str = "etc/systemd/system/mariadb.service.d/90-refit.conf";
pub const APPLY: [&str; 5] = [
    "--yes",
    "mariadb",
    SETTINGS[0],
    "conf.max-connections=99",
    "conf.sql_mode=a\\b",
];

/// A tree with Debian's MariaDB; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = crate::apply::tree(env, name);
    let at = |path: &str| Path::new(&root).join(path);
    fs::create_dir_all(at("etc/mysql/mariadb.conf.d")).expect("the tree is ours");
    let unit = "[Service]\nExecStart=/bin/sh -c \"exec /usr/sbin/mariadbd $VAR\"\n";
    fs::write(at("usr/lib/systemd/system/mariadb.service"), unit).expect("likewise");
    root
}

fn mariadb_is_changed_and_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let bounded = "--accept=bounded-loss";
    for (rest, named) in [
        (&["conf.datadir=/x"][..], "found by it"),
        (&["conf.loose_innodb_doublewrite=0"], "found by it"),
        (&["conf.skip-innodb-doublewrite=1"], "found by it"),
        (&["conf.sql_mode=\"a"], "not one line"),
        (
            &["conf.innodb_flush_log_at_trx_commit=2"],
            "is bounded-loss",
        ),
        (
            &["conf.innodb-doublewrite=off", bounded, "--no-evidence"],
            "is loses-on-crash",
        ),
        (&["conf.innodb_doublewr=off"], "is loses-on-crash"),
        (&["conf.innodb_flush_method=nosync"], "is loses-on-crash"),
        (
            &["conf.sync_binlog=0", "conf.max_connections=9"],
            "is loses-on-crash",
        ),
    ] {
        let all = [&["--yes", "mariadb"], rest].concat();
        expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        assert_eq!(listing(&root), before, "{rest:?}");
    }
    let apply = words("apply", &root, &APPLY);
    expect_code(&env.refit(&apply), 0);
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let text = fs::read_to_string(Path::new(&root).join(FILE)).expect("there");
    let meant = "\n[mariadbd]\nmax_connections = \"99\"\nsql_mode = \"a\\\\b\"\n";
    assert!(text.ends_with(meant), "{text}");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    expect_code(&env.refit(&words("revert", &root, &["mariadb"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}
