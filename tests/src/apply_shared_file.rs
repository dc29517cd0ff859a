//! Changes of several services that edit one file: each is applied and taken back as if it were alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::apply::{SETTINGS, listing, words};
use crate::apply_postfix::{MASTER, ONE, script_is_there, tree};
use crate::points::Points;
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::{KillPoint, run_to};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed, refit_path};

pub const TESTS: &[Test] = &[
    test!(three_daemons_come_and_go_in_any_order),
    test!(an_edit_of_somebody_else_is_seen_and_kept),
    test!(one_that_waits_goes_while_another_stays),
    test!(a_script_without_a_record_is_refused),
    test!(killed_while_another_is_applied),
    test!(killed_while_another_is_taken_back),
];

const CLEANUP: &[&str] = &ONE;
const SMTPD: &[&str] = &["--yes", "postfix/smtpd", SETTINGS[0]];
const SMTP: &[&str] = &["--yes", "postfix/smtp", SETTINGS[0], "env.OTHER=3"];
const ALL: [&[&str]; 3] = [CLEANUP, SMTPD, SMTP];
/// Each order of the three.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

fn apply(env: &TestEnv, root: &str, change: &[&str]) {
    expect_code(&env.refit(&words("apply", root, change)), 0);
}

fn revert(env: &TestEnv, root: &str, change: &[&str]) {
    expect_code(&env.refit(&words("revert", root, &change[1..2])), 0);
}

fn check(env: &TestEnv, root: &str, code: i32) {
    expect_code(&env.refit(&words("status", root, &["--exit-code"])), code);
}

fn three_daemons_come_and_go_in_any_order(env: &TestEnv) -> Outcome {
    // The files of a set of changes are the same, however it came about.
    let mut of_set = BTreeMap::new();
    for there in ORDERS {
        for back in ORDERS {
            let root = tree(env, "tree");
            let mut set = BTreeSet::new();
            let mut seen = |set: &BTreeSet<usize>| {
                let now = listing(&root);
                script_is_there(&root);
                let known = of_set.entry(set.clone()).or_insert_with(|| now.clone());
                assert_eq!(*known, now, "{there:?} {back:?}: {set:?}");
            };
            seen(&set);
            for one in there {
                apply(env, &root, ALL[one]);
                set.insert(one);
                seen(&set);
                check(env, &root, 0);
            }
            for one in back {
                revert(env, &root, ALL[one]);
                set.remove(&one);
                seen(&set);
                check(env, &root, 0);
            }
            fs::remove_dir_all(&root).expect("the tree is ours");
        }
    }
    assert_eq!(of_set.len(), 8, "each set was seen");
    Outcome::Pass
}

fn an_edit_of_somebody_else_is_seen_and_kept(env: &TestEnv) -> Outcome {
    const LINE: &str = "# of the administrator\n";
    for [first, second, _] in ORDERS {
        for (n, back) in [[first, second], [second, first]].into_iter().enumerate() {
            let root = tree(env, "tree");
            let place = Path::new(&root).join(MASTER);
            let edit = || {
                let text = fs::read_to_string(&place).expect("there");
                fs::write(&place, format!("{LINE}{text}")).expect("ours");
            };
            edit();
            let meant = listing(&root);
            let text = fs::read_to_string(&place).expect("there");
            fs::write(&place, text.replacen(LINE, "", 1)).expect("ours");
            apply(env, &root, ALL[first]);
            if n == 0 {
                edit();
                // It is edited for the change that comes, and seen at the one that is there.
                check(env, &root, 1);
                apply(env, &root, ALL[second]);
            } else {
                apply(env, &root, ALL[second]);
                edit();
            }
            expect_printed(
                &env.refit(&words("status", &root, &["--exit-code"])),
                1,
                "changed elsewhere: refit revert keeps that",
            );
            for one in back {
                revert(env, &root, ALL[one]);
            }
            assert_eq!(listing(&root), meant, "{first} {second} {back:?}");
            fs::remove_dir_all(&root).expect("the tree is ours");
        }
    }
    Outcome::Pass
}

/// Its second form waits to be confirmed: taken back, it is its first one, whatever came or went meanwhile.
fn one_that_waits_goes_while_another_stays(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let more = ["--confirm-within=1h", "--yes", "postfix/cleanup", "tz=UTC"];
    let unconfirmed = || {
        let back = words("revert", &root, &["--unconfirmed", "postfix/cleanup"]);
        expect_code(&env.refit(&back), 0);
    };
    apply(env, &root, CLEANUP);
    apply(env, &root, &more);
    apply(env, &root, SMTPD);
    check(env, &root, 0);
    unconfirmed();
    check(env, &root, 0);
    let both = listing(&root);

    apply(env, &root, &more);
    revert(env, &root, SMTPD);
    check(env, &root, 0);
    unconfirmed();
    check(env, &root, 0);
    apply(env, &root, SMTPD);
    assert_eq!(listing(&root), both);

    apply(env, &root, &more);
    expect_code(
        &env.refit(&words("confirm", &root, &["postfix/cleanup"])),
        0,
    );
    revert(env, &root, SMTPD);
    check(env, &root, 0);
    revert(env, &root, CLEANUP);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn a_script_without_a_record_is_refused(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    apply(env, &root, CLEANUP);
    apply(env, &root, SMTPD);
    let record = Path::new(&root).join("var/lib/refit/changes");
    let of_cleanup = fs::read_dir(record).expect("two are applied").flatten();
    let of_cleanup = of_cleanup.map(|entry| entry.path());
    let mut of_cleanup = of_cleanup.filter(|path| path.to_string_lossy().contains("cleanup"));
    fs::remove_file(of_cleanup.next().expect("its record")).expect("ours");
    let now = listing(&root);
    expect_message(
        &env.refit(&words("apply", &root, CLEANUP)),
        2,
        "master.cf:4 starts a script of refit's instead of cleanup",
    );
    assert_eq!(listing(&root), now);
    Outcome::Pass
}

fn killed_while_another_is_applied(env: &TestEnv) -> Outcome {
    killed(env, "apply")
}

fn killed_while_another_is_taken_back(env: &TestEnv) -> Outcome {
    killed(env, "revert")
}

/// Whatever is left of the one, the other can be taken back alone, before it or after it.
fn killed(env: &TestEnv, verb: &str) -> Outcome {
    let run = |root: &str, point: Option<KillPoint>| {
        let more = if verb == "apply" { SMTPD } else { &SMTPD[1..2] };
        let mut command = env.command(&refit_path());
        command.args(words(verb, root, more)).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (calls, was_killed) = run_to(&mut command, point).expect("it is traced");
        assert_eq!(was_killed, point.is_some(), "{point:?}");
        calls
    };
    let begun = |name: &str| {
        let root = tree(env, name);
        let before = listing(&root);
        apply(env, &root, CLEANUP);
        let with_cleanup = listing(&root);
        if verb == "revert" {
            apply(env, &root, SMTPD);
        }
        (root, before, with_cleanup)
    };
    let (reference, _, with_cleanup) = begun("reference");
    let calls = run(&reference, None);
    assert!(calls >= 10, "{calls} calls of {verb} were seen");
    let with_smtpd = {
        let root = tree(env, "other");
        apply(env, &root, SMTPD);
        listing(&root)
    };
    let (mut whole, mut left) = (0, 0);
    let points = Points::of(KillPoint::around(calls));
    for &point in &points.tried {
        for cleanup_first in [true, false] {
            let (root, before, _) = begun("tree");
            run(&root, Some(point));
            script_is_there(&root);
            let status = env.refit(&words("status", &root, &["--exit-code"]));
            match status.status.code() {
                Some(0) => whole += 1,
                _ => left += 1,
            }
            let is_there = String::from_utf8_lossy(&status.stdout).contains("postfix/smtpd");
            if cleanup_first {
                revert(env, &root, CLEANUP);
                if status.status.code() == Some(0) && is_there {
                    assert_eq!(listing(&root), with_smtpd, "{point:?}");
                }
            }
            if is_there {
                revert(env, &root, SMTPD);
            }
            if !cleanup_first {
                assert_eq!(listing(&root), with_cleanup, "{point:?}");
                check(env, &root, 0);
                revert(env, &root, CLEANUP);
            }
            assert_eq!(listing(&root), before, "{point:?}: {cleanup_first}");
            fs::remove_dir_all(&root).expect("the tree is ours");
        }
    }
    println!(
        "counted: {verb}: {calls} calls; kills: {points}; {whole} whole, {left} left to be taken back"
    );
    assert!(whole > 0 && left > 0, "{whole} {left}");
    Outcome::Pass
}
