//! `refit apply` on a PostgreSQL cluster of a tree (`--root`): its files, and which of them counts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(a_cluster_is_changed_and_taken_back),
    test!(what_wins_over_refits_file_is_named),
    test!(a_risk_wants_to_be_accepted),
    test!(what_cannot_be_applied_changes_nothing),
    test!(what_is_not_confirmed_goes_at_the_next_start),
];

const DIR: &str = "etc/postgresql/15/main";
pub const ENVIRONMENT: &str = "etc/postgresql/15/main/environment";
pub const CONF: &str = "etc/postgresql/15/main/conf.d/90-refit.conf";
const AUTO: &str = "var/lib/postgresql/15/main/postgresql.auto.conf";
pub const APPLY: [&str; 5] = [
    "--yes",
    "postgresql",
    SETTINGS[0],
    "env.WORD=it's \\",
    "conf.work_mem=8MB",
];

pub const UNTIL_CONFIRMED: [&str; 6] = [
    "--confirm-within=1h",
    APPLY[0],
    APPLY[1],
    APPLY[2],
    APPLY[3],
    APPLY[4],
];

/// A tree with a cluster of Debian's; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = crate::apply::tree(env, name);
    let at = |path: &str| Path::new(&root).join(path);
    for dir in [
        "etc/postgresql/15/main/conf.d",
        "var/lib/postgresql/15/main",
    ] {
        fs::create_dir_all(at(dir)).expect("the tree is ours");
    }
    for (path, text) in [
        ("usr/lib/systemd/system/postgresql.service", "[Service]\n"),
        ("usr/lib/systemd/system/postgresql@.service", "[Service]\n"),
        (
            "etc/postgresql/15/main/postgresql.conf",
            "data_directory = '/var/lib/postgresql/15/main'\nwork_mem = 1MB\ninclude_dir = 'conf.d'\n",
        ),
        // No newline at its end.
        (
            ENVIRONMENT,
            "# of the administrator\nLD_PRELOAD = '/first.so'",
        ),
        (AUTO, "# Do not edit\n"),
    ] {
        fs::write(at(path), text).expect("likewise");
    }
    fs::set_permissions(at(ENVIRONMENT), Permissions::from_mode(0o640)).expect("likewise");
    root
}

fn a_cluster_is_changed_and_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let apply = words("apply", &root, &APPLY);
    expect_printed(
        &env.refit(&apply),
        0,
        "postgresql@15-main.service: applied in the tree",
    );
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let read = |path: &str| fs::read_to_string(Path::new(&root).join(path)).expect("there");
    let environment = read(ENVIRONMENT);
    let mut lines = environment.lines();
    assert_eq!(lines.next(), Some("# of the administrator"));
    assert_eq!(lines.next(), Some("LD_PRELOAD = '/first.so'"));
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("# preload="))
    );
    let ours = lines.next().unwrap_or_default();
    assert!(
        ours.starts_with("LD_PRELOAD = '/usr/lib/refit/") && ours.ends_with("/one.so:/first.so'"),
        "{environment}"
    );
    assert_eq!(lines.next(), Some(r"WORD = 'it''s \\'"));
    assert!(read(CONF).ends_with("\nwork_mem = '8MB'\n"));
    let after = listing(&root);
    assert_eq!(after[ENVIRONMENT].0 & 0o777, 0o640);
    // Somebody else's edit of refit's line stops the revert.
    let path = Path::new(&root).join(ENVIRONMENT);
    fs::write(&path, environment.replace("WORD = ", "WORD=")).expect("ours");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1);
    expect_code(&env.refit(&apply), 3);
    let revert = words("revert", &root, &["postgresql@15-main"]);
    expect_code(&env.refit(&revert), 3);
    fs::write(&path, environment).expect("ours");
    assert_eq!(listing(&root), after, "nothing was reverted");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// Later files of conf.d, later lines and postgresql.auto.conf win.
fn what_wins_over_refits_file_is_named(env: &TestEnv) -> Outcome {
    let apply = ["--yes", "postgresql", "conf.work_mem=8MB"];
    for (path, text, named) in [
        (AUTO, "work_mem = '2MB'\n", "ALTER SYSTEM RESET work_mem"),
        (
            "etc/postgresql/15/main/conf.d/91-own.conf",
            "\nWork_Mem 2MB # why\n",
            "conf.d/91-own.conf:2 sets work_mem to `2MB`",
        ),
        (
            "etc/postgresql/15/main/postgresql.conf",
            "include_dir 'conf.d'\nwork_mem = 2MB\n",
            "postgresql.conf:2 sets work_mem",
        ),
    ] {
        let root = tree(env, "tree");
        fs::write(Path::new(&root).join(path), text).expect("the tree is ours");
        let before = listing(&root);
        expect_message(&env.refit(&words("apply", &root, &apply)), 2, named);
        assert_eq!(listing(&root), before);
        fs::remove_dir_all(&root).expect("likewise");
    }
    // What comes earlier does not, and the next cluster is another one.
    let root = tree(env, "tree");
    let at = |path: &str| Path::new(&root).join(path);
    fs::write(
        at("etc/postgresql/15/main/conf.d/10-own.conf"),
        "work_mem = 2MB\n",
    )
    .expect("ours");
    fs::create_dir_all(at("etc/postgresql/15/next")).expect("likewise");
    fs::write(at("etc/postgresql/15/next/postgresql.conf"), "").expect("likewise");
    let before = listing(&root);
    let several = env.refit(&words("apply", &root, &apply));
    expect_message(
        &several,
        2,
        "postgresql@15-main.service, postgresql@15-next.service",
    );
    let one = ["--yes", "postgresql@15-main", "conf.work_mem=8MB"];
    expect_code(&env.refit(&words("apply", &root, &one)), 0);
    expect_code(
        &env.refit(&words("revert", &root, &["postgresql@15-main"])),
        0,
    );
    assert_eq!(listing(&root), before);

    // Without conf.d it is as ALTER SYSTEM does it.
    let own = at(&format!("{DIR}/postgresql.conf"));
    fs::write(&own, "data_directory = '/var/lib/postgresql/15/main'\n").expect("likewise");
    let before = listing(&root);
    expect_code(&env.refit(&words("apply", &root, &one)), 0);
    let auto = fs::read_to_string(at(AUTO)).expect("there");
    assert!(
        auto.starts_with("# Do not edit\n") && auto.ends_with("\nwork_mem = '8MB'\n"),
        "{auto}"
    );
    assert!(!at(CONF).exists());
    expect_code(
        &env.refit(&words("revert", &root, &["postgresql@15-main"])),
        0,
    );
    assert_eq!(listing(&root), before);
    fs::write(&own, "work_mem = 1MB\n").expect("likewise");
    let nowhere = env.refit(&words("apply", &root, &one));
    expect_message(&nowhere, 2, "include_dir = 'conf.d'");
    Outcome::Pass
}

fn a_risk_wants_to_be_accepted(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let none = ["--no-evidence"];
    let lower = ["--accept=bounded-loss", "--no-evidence"];
    let higher = ["--accept=loses-on-crash", "--no-evidence"];
    let other = "conf.work_mem=8MB";
    for (setting, how, named) in [
        ("conf.synchronous_commit=off", &[][..], "is bounded-loss"),
        (
            "conf.synchronous_commit=OFF",
            &["--accept=bounded-loss"],
            "--from RESULT",
        ),
        ("conf.synchronous_commit=local", &lower, "is loses-on-crash"),
        ("conf.fsync=off", &lower, "is loses-on-crash"),
        ("conf.fsync=of", &lower, "is loses-on-crash"),
        ("conf.full_page_writes=0", &[], "is loses-on-crash"),
        ("conf.zero_damaged_pages=on", &[], "is loses-on-crash"),
        ("conf.fsync=off", &none, "--accept"),
        (
            "conf.fsync=off",
            &["--accept=changes-behaviour"],
            "loses-on-crash",
        ),
    ] {
        // A setting of a class above does not hide it.
        for order in [[setting, other], [other, setting]] {
            let all = [&["--yes", "postgresql"], how, &order].concat();
            expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        }
        assert_eq!(listing(&root), before, "{setting}");
    }
    for setting in [
        "conf.fsync=on",
        "conf.synchronous_commit=remote_apply",
        "conf.zero_damaged_pages=off",
    ] {
        expect_code(
            &env.refit(&words("plan", &root, &["postgresql", setting])),
            0,
        );
    }
    let all = [&["--yes", "postgresql", "conf.fsync=off"], &higher[..]].concat();
    expect_code(&env.refit(&words("apply", &root, &all)), 0);
    for what in [&[][..], &["--json", "-"]] {
        let status = env.refit(&words("status", &root, what));
        expect_printed(&status, 0, "loses-on-crash");
    }
    let status = env.refit(&words("status", &root, &[]));
    expect_printed(&status, 0, "loses-on-crash, without evidence");
    expect_code(&env.refit(&words("revert", &root, &["postgresql"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn what_cannot_be_applied_changes_nothing(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    for (rest, named) in [
        (
            &["postgresql", "sync=off"][..],
            "`sync=off` cannot be applied",
        ),
        (&["postgresql", "conf.port=1"], "find the cluster by it"),
        (&["postgresql", "conf.work_mem=1\n2"], "not one line"),
        (&["postgresql", "env.A=1\n2"], "not one line"),
        (&["postgresql@15-none", "tz=UTC"], "pg_lsclusters"),
    ] {
        for verb in ["plan", "apply"] {
            expect_message(&env.refit(&words(verb, &root, rest)), 2, named);
        }
    }
    fs::write(Path::new(&root).join(CONF), "").expect("the tree is ours");
    let apply = words("apply", &root, &APPLY);
    expect_message(&env.refit(&apply), 2, "is there already");
    fs::remove_file(Path::new(&root).join(CONF)).expect("likewise");
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn what_is_not_confirmed_goes_at_the_next_start(env: &TestEnv) -> Outcome {
    const AT_BOOT: &str = "etc/systemd/system/refit-undo-postgresql@15-main-at-boot.service";
    const WANTS: &str =
        "etc/systemd/system/sysinit.target.d/90-refit-undo-postgresql@15-main-at-boot.conf";
    let root = tree(env, "tree");
    let before = listing(&root);
    let there = |path: &str| Path::new(&root).join(path).exists();
    let apply = words("apply", &root, &UNTIL_CONFIRMED);
    expect_code(&env.refit(&apply), 0);
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    // It is not one that stays.
    expect_code(&env.refit(&words("apply", &root, &APPLY)), 2);
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 0, " unless it is confirmed\n");
    assert!(there(CONF) && there(AT_BOOT) && there(WANTS));
    let of_boot = fs::read_to_string(Path::new(&root).join(AT_BOOT)).expect("there");
    assert!(of_boot.contains("\nBefore=sysinit.target\n"), "{of_boot}");

    // As a reboot does.
    fs::remove_dir_all(format!("{root}/run")).expect("the tree is ours");
    let at_boot = ["--unconfirmed", "--at-boot", "postgresql"];
    expect_code(&env.refit(&words("revert", &root, &at_boot)), 0);
    assert_eq!(listing(&root), before);

    expect_code(&env.refit(&apply), 0);
    let confirm = words("confirm", &root, &["postgresql"]);
    expect_printed(&env.refit(&confirm), 0, "confirmed; it stays");
    expect_printed(&env.refit(&confirm), 0, "nothing to do");
    assert!(there(CONF) && !there(AT_BOOT) && !there(WANTS));
    let kept = listing(&root);
    expect_printed(
        &env.refit(&words("revert", &root, &at_boot)),
        0,
        "nothing to do",
    );
    assert_eq!(listing(&root), kept);
    let same = env.refit(&words("apply", &root, &APPLY));
    expect_printed(&same, 0, "nothing to do");
    expect_code(&env.refit(&words("revert", &root, &["postgresql"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}
