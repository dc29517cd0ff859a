//! `refit revert` of files that somebody else edited since the change: it keeps what is theirs, or stops.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::apply::{DROP_IN, SETTINGS, listing, words};
use crate::apply_postgresql::{self, ENVIRONMENT};
use crate::apply_redis::{self, CONFIG, OWN};
use crate::points::Points;
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::{KillPoint, run_beside, run_to};
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_printed, refit_path,
};
use crate::{apply, apply_wrapper};

pub const TESTS: &[Test] = &[
    test!(an_edit_elsewhere_is_kept),
    test!(an_edit_of_refits_lines_is_left_to_a_person),
    test!(one_conflict_keeps_all_files),
    test!(an_edit_at_any_moment_is_kept).limit_seconds(180),
    test!(a_file_system_that_cannot_exchange_loses_one_moment).limit_seconds(180),
    test!(killed_where_files_cannot_be_exchanged).limit_seconds(180),
    test!(killed_while_an_edit_is_kept).limit_seconds(180),
];

/// What a tree is changed by, and one file of it.
struct Case {
    tree: fn(&TestEnv, &str) -> String,
    apply: &'static [&'static str],
    service: &'static str,
    file: &'static str,
}

const REDIS: Case = Case {
    tree: apply_redis::tree,
    apply: &apply_redis::APPLY,
    service: "redis-server@one",
    file: CONFIG,
};

const CLUSTER: Case = Case {
    tree: apply_postgresql::tree,
    apply: &apply_postgresql::APPLY,
    service: "postgresql@15-main",
    file: ENVIRONMENT,
};

/// An edit of `now`, which consists of `before`, a newline, and refit's lines.
type Edit = fn(now: &str) -> String;

fn an_edit_elsewhere_is_kept(env: &TestEnv) -> Outcome {
    let edits: [(Edit, Edit); 7] = [
        (
            |now| format!("# first\n{now}"),
            |before| format!("# first\n{before}"),
        ),
        (
            |now| now.replacen('\n', "\r\n# second\r\n", 1),
            |before| before.replacen('\n', "\r\n# second\r\n", 1),
        ),
        (
            |now| format!("{now}timeout 30\n"),
            |before| format!("{before}\ntimeout 30\n"),
        ),
        (
            |now| format!("{now}timeout 30"),
            |before| format!("{before}\ntimeout 30"),
        ),
        (
            |now| now.split_once('\n').expect("two lines").1.to_owned(),
            |before| before.split_once('\n').expect("two lines").1.to_owned(),
        ),
        (
            |now| format!("# first\n{now}\n\ntimeout 30\n\n"),
            |before| format!("# first\n{before}\n\n\ntimeout 30\n\n"),
        ),
        (
            |now| now.replacen("\n# preload", "\ntimeout 30\n# preload", 1),
            |before| format!("{before}\ntimeout 30\n"),
        ),
    ];
    for (n, case) in [REDIS, CLUSTER].iter().enumerate() {
        for (m, (edit, meant)) in edits.iter().enumerate() {
            let root = (case.tree)(env, &format!("tree{n}{m}"));
            let path = Path::new(&root).join(case.file);
            let before = fs::read_to_string(&path).expect("there");
            let untouched = listing(&root);
            expect_code(&env.refit(&words("apply", &root, case.apply)), 0);
            let applied = fs::read_to_string(&path).expect("there");
            let edited = edit(&applied);
            assert_ne!(edited, applied, "edit {m}");
            fs::write(&path, &edited).expect("the tree is ours");
            fs::set_permissions(&path, Permissions::from_mode(0o604)).expect("likewise");
            let status = env.refit(&words("status", &root, &["--exit-code"]));
            expect_printed(&status, 1, "changed elsewhere: refit revert keeps that");
            let revert = env.refit(&words("revert", &root, &[case.service]));
            expect_printed(&revert, 0, "was edited elsewhere: that is kept");
            let left = fs::read_to_string(&path).expect("there");
            assert_eq!(left, meant(&before), "edit {m} of {}", case.file);
            let mut now = listing(&root);
            assert_eq!(now[case.file].0 & 0o7777, 0o604);
            let of_file = untouched[case.file];
            now.insert(case.file.to_owned(), of_file);
            assert_eq!(now, untouched, "edit {m} of {}", case.file);
            let status = env.refit(&words("status", &root, &[]));
            expect_printed(&status, 0, "nothing is applied");
        }
    }
    Outcome::Pass
}

fn an_edit_of_refits_lines_is_left_to_a_person(env: &TestEnv) -> Outcome {
    let edits: [(&Case, Edit, &str); 9] = [
        // A line of refit's, changed or gone.
        (
            &REDIS,
            |now| now.replace("\ninclude ", "\n#include "),
            "+#include ",
        ),
        (&REDIS, |now| now.replace("\ninclude ", "\n\ninclude "), "+"),
        (
            &REDIS,
            |now| now.replace(".refit.conf\n", ".refit.conf\r\n"),
            "-include ",
        ),
        (
            &REDIS,
            |now| now.lines().rev().collect::<Vec<_>>().join("\n"),
            "-include ",
        ),
        // CONFIG REWRITE copies refit's value.
        (
            &REDIS,
            |now| format!("{now}maxmemory 1gb\n"),
            "+maxmemory 1gb",
        ),
        (
            &REDIS,
            |now| now.replacen("maxmemory 2gb", "MaxMemory 1gb", 1),
            "+MaxMemory 1gb",
        ),
        (
            &CLUSTER,
            |now| format!("# first\n{}", now.replace("WORD = ", "WORD=")),
            "+WORD=",
        ),
        (
            &CLUSTER,
            |now| format!("{now}LD_PRELOAD = '/usr/lib/refit/0/x.so'\n"),
            "+LD_PRELOAD = '/usr/lib/refit/0/x.so'",
        ),
        (&CLUSTER, |_| String::new(), "-LD_PRELOAD"),
    ];
    for (n, (case, edit, shown)) in edits.iter().enumerate() {
        let root = (case.tree)(env, &format!("tree{n}"));
        let path = Path::new(&root).join(case.file);
        let before = listing(&root);
        expect_code(&env.refit(&words("apply", &root, case.apply)), 0);
        let applied = fs::read_to_string(&path).expect("there");
        fs::write(&path, edit(&applied)).expect("the tree is ours");
        let edited = listing(&root);
        let revert = words("revert", &root, &[case.service]);
        let refused = env.refit(&revert);
        expect_message(&refused, 3, "nothing was reverted");
        for part in [
            "refit changed:",
            "somebody else changed:",
            &format!("\n{shown}"),
        ] {
            expect_message(&refused, 3, part);
        }
        let status = env.refit(&words("status", &root, &["--exit-code"]));
        expect_printed(&status, 1, "other content");
        assert_eq!(listing(&root), edited, "edit {n}");
        fs::write(&path, &applied).expect("likewise");
        expect_code(&env.refit(&revert), 0);
        assert_eq!(listing(&root), before, "edit {n}");
    }
    Outcome::Pass
}

/// One file could be reverted, and another could not.
fn one_conflict_keeps_all_files(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    for file in [CONFIG, OWN] {
        let path = Path::new(&root).join(file);
        let text = fs::read_to_string(&path).expect("there");
        fs::write(&path, format!("# first\n{text}")).expect("the tree is ours");
    }
    let edited = listing(&root);
    let revert = words("revert", &root, &[REDIS.service]);
    expect_message(&env.refit(&revert), 3, "redis-one.refit.conf changed");
    assert_eq!(listing(&root), edited);
    let status = env.refit(&words("status", &root, &["--json", "-"]));
    expect_printed(&status, 0, "\"phase\": \"applied\"");

    // A drop-in is refit's own: what somebody adds to it is not torn from its section.
    let root = crate::apply::tree(env, "unit");
    let apply = ["--yes", "a", SETTINGS[1]];
    expect_code(&env.refit(&words("apply", &root, &apply)), 0);
    let path = Path::new(&root).join(DROP_IN);
    let text = fs::read_to_string(&path).expect("there");
    fs::write(&path, format!("{text}Nice=5\n")).expect("the tree is ours");
    let refused = env.refit(&words("revert", &root, &["a"]));
    expect_message(&refused, 3, "+Nice=5");
    Outcome::Pass
}

const WRAPPED: Case = Case {
    tree: apply_wrapper::tree,
    apply: &apply_wrapper::IN_PLACE,
    service: apply_wrapper::MOVED,
    file: apply_wrapper::PLACE,
};

const UNIT: Case = Case {
    tree: apply::tree,
    apply: &["--yes", "a", SETTINGS[1]],
    service: "a",
    file: DROP_IN,
};

fn an_edit_at_any_moment_is_kept(env: &TestEnv) -> Outcome {
    edited_at_each_call(env, TestEnv::refit_command, 0);
    Outcome::Pass
}

/// The moment is the one between the look at the file and its rename, of each verb that renames.
fn a_file_system_that_cannot_exchange_loses_one_moment(env: &TestEnv) -> Outcome {
    edited_at_each_call(env, without_exchange, 1);
    Outcome::Pass
}

/// renameat2(2) has no flags, as where the file system does not know them.
fn without_exchange(env: &TestEnv, words: &[&str]) -> Command {
    let mut command = env.command(&env.program("refuses"));
    command.arg("exchange");
    command.arg(refit_path()).args(words);
    command
}

/// Somebody puts another file in the place of the one that refit edits, before a call of refit's that changes files. It is
/// lost at so many calls of a verb.
fn edited_at_each_call(env: &TestEnv, refit: fn(&TestEnv, &[&str]) -> Command, lost_at: usize) {
    for case in [REDIS, CLUSTER, WRAPPED, UNIT] {
        for verb in ["apply", "revert"] {
            let begun = || {
                let root = (case.tree)(env, "tree");
                let apply = words("apply", &root, case.apply);
                let mut command = if verb == "apply" {
                    refit(env, &apply)
                } else {
                    expect_code(&env.refit(&apply), 0);
                    refit(env, &words("revert", &root, &[case.service]))
                };
                command.stdin(Stdio::null()).stdout(Stdio::null());
                command.stderr(Stdio::null());
                (root, command)
            };
            let (root, mut command) = begun();
            let (calls, _) = run_to(&mut command, None).expect("it is traced");
            fs::remove_dir_all(&root).expect("the tree is ours");
            let (mut codes, points) = (BTreeMap::new(), Points::of(1..=calls));
            let mut lost = Vec::new();
            for &call in &points.tried {
                let (root, mut command) = begun();
                let (path, new) = (Path::new(&root).join(case.file), env.path("new"));
                // An edit of nothing that refit wrote, so that nobody can take it for refit's.
                let edit = || {
                    fs::write(&new, "# edited\nmaxclients 7\n").expect("ours");
                    let _ = fs::rename(&new, &path);
                };
                let (seen, code) = run_beside(&mut command, call, edit).expect("it is traced");
                assert!(seen.files >= call, "{verb}, call {call} of {calls}");
                let is_edited = || {
                    let now = fs::read_to_string(&path).unwrap_or_default();
                    now.starts_with("# edited\nmaxclients 7\n")
                };
                // The directory of a file of refit's own may not be there yet.
                let was_edited = !fs::exists(&new).expect("readable");
                *codes.entry((code, was_edited)).or_insert(0) += 1;
                if was_edited && !is_edited() {
                    lost.push(call);
                } else {
                    let mut revert = refit(env, &words("revert", &root, &[case.service]));
                    revert.output().expect("it starts");
                    assert!(
                        !was_edited || is_edited(),
                        "{verb}, call {call}: lost by the next revert"
                    );
                }
                fs::remove_dir_all(&root).expect("the tree is ours");
            }
            println!(
                "counted: {} {verb}: {points}; exit code, edited: {codes:?}; lost at {lost:?}",
                case.service
            );
            assert!(
                lost.len() <= lost_at,
                "{verb}: the edit is lost at {lost:?}"
            );
            let edited = codes.keys().filter(|(_, was_edited)| *was_edited);
            assert!(edited.count() > 1, "{codes:?}");
        }
    }
}

/// What is done there is what is done elsewhere, and a kill leaves what the next revert takes back.
fn killed_where_files_cannot_be_exchanged(env: &TestEnv) -> Outcome {
    for case in [REDIS, UNIT] {
        for verb in ["apply", "revert"] {
            let reference = (case.tree)(env, "reference");
            expect_code(&env.refit(&words("apply", &reference, case.apply)), 0);
            let applied = fs::read(Path::new(&reference).join(case.file)).expect("there");
            fs::remove_dir_all(&reference).expect("the tree is ours");
            let run = |point| {
                let root = (case.tree)(env, "tree");
                let before = listing(&root);
                let apply = words("apply", &root, case.apply);
                let mut command = if verb == "apply" {
                    without_exchange(env, &apply)
                } else {
                    let done = without_exchange(env, &apply).output().expect("it starts");
                    expect_code(&done, 0);
                    let file = fs::read(Path::new(&root).join(case.file)).expect("there");
                    assert!(file == applied, "{} is another", case.file);
                    without_exchange(env, &words("revert", &root, &[case.service]))
                };
                command.stdin(Stdio::null()).stdout(Stdio::null());
                command.stderr(Stdio::null());
                let (calls, _) = run_to(&mut command, point).expect("it is traced");
                let mut revert = without_exchange(env, &words("revert", &root, &[case.service]));
                let reverted = revert.output().expect("it starts");
                let now = listing(&root);
                assert_eq!(now, before, "{verb}, {point:?}: {}", described(&reverted));
                fs::remove_dir_all(&root).expect("the tree is ours");
                calls
            };
            let points = Points::of(KillPoint::around(run(None)));
            for &point in &points.tried {
                run(Some(point));
            }
            println!("counted: {} {verb}: kills: {points}", case.service);
        }
    }
    Outcome::Pass
}

fn killed_while_an_edit_is_kept(env: &TestEnv) -> Outcome {
    // Beside refit's lines, so that what a killed revert leaves is no plain edit of what was applied.
    let edited = |name: &str| {
        let root = apply_redis::tree(env, name);
        expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
        let path = Path::new(&root).join(CONFIG);
        let text = fs::read_to_string(&path).expect("there");
        fs::write(&path, format!("# first\n{text}timeout 30\n")).expect("the tree is ours");
        root
    };
    let kill = |root: &str, point| {
        let mut command = env.refit_command(&words("revert", root, &[REDIS.service]));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        run_to(&mut command, point).expect("it is traced")
    };
    let reference = edited("reference");
    let (calls, _) = kill(&reference, None);
    let meant = listing(&reference);
    let text = fs::read_to_string(Path::new(&reference).join(CONFIG)).expect("there");
    assert_eq!(text, "# first\nport 6379\nmaxmemory 2gb\ntimeout 30\n");
    assert!(calls > 10, "{calls} calls were seen");
    let points = Points::of(KillPoint::around(calls));
    for &point in &points.tried {
        let root = edited("tree");
        let before = listing(&root);
        kill(&root, Some(point));
        let now = listing(&root);
        assert!(
            [&before, &meant]
                .map(|then| then[CONFIG])
                .contains(&now[CONFIG]),
            "{point:?}"
        );
        let status = env.refit(&words("status", &root, &["--json", "-"]));
        expect_code(&status, 0);
        if String::from_utf8_lossy(&status.stdout).contains("phase") {
            expect_code(&env.refit(&words("revert", &root, &[REDIS.service])), 0);
        }
        assert_eq!(listing(&root), meant, "{point:?}");
        fs::remove_dir_all(&root).expect("the tree is ours");
    }
    println!("counted: kills: {points}");
    Outcome::Pass
}
