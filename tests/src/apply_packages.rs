//! What status tells of packages that were upgraded or purged since, in a tree.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::apply::{DROP_IN, listing, tree, words};
use crate::apply_redis;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_printed};

pub const TESTS: &[Test] = &[
    test!(an_upgrade_is_named),
    test!(what_a_purge_took_stays_away),
    test!(a_file_that_is_gone_without_its_package_is_left_to_a_person),
];

/// dpkg's lists of two packages, of which `a` has this program and unit, and its state.
fn packages(root: &str, files: &str, a: &str) {
    let dir = Path::new(root).join("var/lib/dpkg");
    fs::create_dir_all(dir.join("info")).expect("the tree is ours");
    let library = "/.\n/lib\n/lib/one.so\n";
    let status = format!(
        "Package: a\n{a}\nPackage: libone\nStatus: install ok installed\nArchitecture: amd64\nVersion: 7\n"
    );
    for (name, text) in [
        ("info/a.list", files),
        ("info/libone:amd64.list", library),
        ("status", &status),
    ] {
        fs::write(dir.join(name), text).expect("the tree is ours");
    }
}

fn installed(version: &str) -> String {
    format!("Status: install ok installed\nVersion: {version}\n")
}

fn shown(env: &TestEnv, root: &str) -> Value {
    let output = env.refit(&words("status", root, &["--json", "-"]));
    expect_code(&output, 0);
    let mut all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    all["services"][0].take()
}

fn an_upgrade_is_named(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    packages(&root, "/.\n/bin/a\n", &installed("1.0-1"));
    let apply = words("apply", &root, &["--yes", "a", "preload=/lib/one.so"]);
    expect_code(&env.refit(&apply), 0);
    let check = words("status", &root, &["--exit-code", "a"]);
    let as_applied = env.refit(&check);
    expect_code(&as_applied, 0);
    assert!(shown(env, &root)["packages"].is_null());

    packages(&root, "/.\n/bin/a\n", &installed("1.0-2"));
    expect_printed(&env.refit(&check), 0, "package        a 1.0-1 → 1.0-2\n");
    let package = shown(env, &root)["packages"][0].clone();
    assert_eq!(package["name"], "a");
    assert_eq!(package["version"], "1.0-1");
    assert_eq!(package["now"], "1.0-2");

    let status = Path::new(&root).join("var/lib/dpkg/status");
    let text = fs::read_to_string(&status).expect("it is there");
    fs::write(&status, text.replace("Version: 7", "Version: 8")).expect("it is ours");
    let same = env.refit(&check);
    expect_printed(&same, 0, "package        a 1.0-1 → 1.0-2\n");
    assert!(
        !String::from_utf8_lossy(&same.stdout).contains("libone"),
        "the library is the same"
    );
    let library = Path::new(&root).join("lib/one.so");
    let mut content = fs::read(&library).expect("it is there");
    content.push(1);
    fs::write(&library, content).expect("it is ours");
    let newer = env.refit(&check);
    expect_printed(&newer, 0, "package        libone:amd64 7 → 8\n");
    expect_printed(&newer, 0, "/one.so is an earlier /lib/one.so\n");

    // Without dpkg's lists, nothing is claimed.
    fs::remove_file(&status).expect("it is ours");
    assert_eq!(shown(env, &root)["packages"], Value::Null);
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    Outcome::Pass
}

/// redis.conf of a server whose package is in dpkg's lists.
fn redis(env: &TestEnv) -> String {
    let root = apply_redis::tree(env, "redis");
    let unit = "/lib/systemd/system/redis-server@.service\n/usr/lib/systemd/system/redis-server@.service\n";
    packages(
        &root,
        &format!("{unit}/usr/bin/redis-server\n"),
        &installed("7.0"),
    );
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    fs::remove_file(Path::new(&root).join(apply_redis::CONFIG)).expect("it is ours");
    root
}

fn what_a_purge_took_stays_away(env: &TestEnv) -> Outcome {
    let root = redis(env);
    fs::write(Path::new(&root).join("var/lib/dpkg/status"), "Package: b\n").expect("it is ours");
    let check = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(
        &check,
        1,
        "package        a 7.0 → purged, what refit wrote is left\n",
    );
    expect_printed(&check, 1, "next           refit revert redis-server@one");
    let revert = env.refit(&words("revert", &root, &["redis-server@one"]));
    expect_printed(&revert, 0, "redis-one.conf went with its package\n");
    let left = listing(&root);
    assert!(left.contains_key("var/lib/dpkg/status"));
    for path in [
        apply_redis::CONFIG,
        apply_redis::OWN,
        apply_redis::UNIT,
        DROP_IN,
    ] {
        assert!(!left.contains_key(path), "{path}");
    }
    Outcome::Pass
}

fn a_file_that_is_gone_without_its_package_is_left_to_a_person(env: &TestEnv) -> Outcome {
    let root = redis(env);
    let before = listing(&root);
    let revert = env.refit(&words("revert", &root, &["redis-server@one"]));
    expect_code(&revert, 3);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}
