//! A verb killed at each of its calls, on a tree as it is before it, and what the files, `status` and the next verbs make
//! of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::apply::words;
use crate::points::Points;
use crate::runner::Outcome;
use crate::sys::kill_point::{KillPoint, run_to};
use crate::test_env::{TestEnv, expect_code, refit_path};

/// What is changed while refit is killed.
pub struct Subject {
    pub tree: fn(&TestEnv, &str) -> String,
    pub apply: &'static [&'static str],
    pub service: &'static str,
    /// Files that are as before or as applied at each point.
    pub files: &'static [&'static str],
    /// What holds at each point.
    pub always: fn(&str),
}

/// A sweep: each verb on a tree as it is before it, killed at a point.
pub fn sweep(env: &TestEnv, verb: &str, subject: &Subject) -> Outcome {
    let (tree, how) = (subject.tree, subject.apply);
    let reference = tree(env, "reference");
    let before = listing(&reference);
    let apply = words("apply", &reference, how);
    let of_apply = killed(env, &apply, None);
    let after = listing(&reference);
    let of_revert = killed(env, &words("revert", &reference, &[subject.service]), None);
    assert_eq!(listing(&reference), before);
    let calls = if verb == "apply" { of_apply } else { of_revert };
    assert!(calls >= 10, "{calls} calls of {verb} were seen");

    let mut seen = BTreeMap::new();
    let points = Points::of(KillPoint::around(calls));
    for &point in &points.tried {
        let root = tree(env, "tree");
        let apply = words("apply", &root, how);
        let revert = words("revert", &root, &[subject.service]);
        if verb == "revert" {
            expect_code(&env.refit(&apply), 0);
            killed(env, &revert, Some(point));
        } else {
            killed(env, &apply, Some(point));
        }
        (subject.always)(&root);
        let now = listing(&root);
        for file in subject.files {
            let is_whole = [&before, &after].map(|then| then.get(*file) == now.get(*file));
            assert!(is_whole.contains(&true), "{point:?}: a part of {file}");
        }
        let phase = phase(env, &root);
        *seen.entry(phase.clone()).or_insert(0) += 1;
        match phase.as_deref() {
            None => assert_eq!(now, before, "{point:?}: status names no change"),
            Some("applied") => assert_eq!(now, after, "{point:?}: status calls it applied"),
            Some(_) => {
                let check = env.refit(&words("status", &root, &["--exit-code"]));
                expect_code(&check, 1);
                // It cannot be confirmed any more.
                let printed = String::from_utf8_lossy(&check.stdout);
                let is_proposed = |verb: &str| printed.contains(&format!("refit {verb} "));
                assert!(
                    is_proposed("revert") && !is_proposed("confirm"),
                    "{printed}"
                );
                expect_code(&env.refit(&apply), 2);
                assert_eq!(listing(&root), now, "{point:?}: refused, and changed");
            }
        }
        if phase.is_some() {
            expect_code(&env.refit(&revert), 0);
        }
        assert_eq!(listing(&root), before, "{point:?}: reverted");
        expect_code(&env.refit(&apply), 0);
        assert_eq!(listing(&root), after, "{point:?}: applied again");
        assert_eq!(kept(&root).len(), 1, "{point:?}");
        expect_code(&env.refit(&revert), 0);
        assert_eq!(listing(&root), before, "{point:?}: reverted again");
        assert!(kept(&root).is_empty(), "{point:?}: {:?}", kept(&root));
        fs::remove_dir_all(&root).expect("the tree is ours");
    }
    println!(
        "counted: {verb}: {calls} calls that change files; kills: {points}; status after them: {seen:?}"
    );
    assert!(seen.len() > 1, "{seen:?}");
    Outcome::Pass
}

/// A second change of a service that has `first`, or a revert of some of its settings, killed at each point: what is left
/// is the first form, the second, or an interrupted change, and a revert takes back all of it.
pub fn sweep_of_second(env: &TestEnv, verb: &str, subject: &Subject, first: &[&str]) -> Outcome {
    let tree = |name: &str| {
        let root = (subject.tree)(env, name);
        let before = listing(&root);
        expect_code(&env.refit(&words("apply", &root, first)), 0);
        (root, before)
    };
    let (reference, before) = tree("reference");
    let of_first = listing(&reference);
    let calls = killed(env, &words(verb, &reference, subject.apply), None);
    let after = listing(&reference);
    assert!(calls >= 5 && after != of_first, "{calls} calls were seen");
    let mut seen = BTreeMap::new();
    let points = (1..=calls).flat_map(|n| [KillPoint::Before(n), KillPoint::After(n)]);
    for point in points {
        let (root, _) = tree("tree");
        let second = words(verb, &root, subject.apply);
        killed(env, &second, Some(point));
        (subject.always)(&root);
        let now = listing(&root);
        for file in subject.files {
            let is_whole = [&of_first, &after].map(|then| then.get(*file) == now.get(*file));
            assert!(is_whole.contains(&true), "{point:?}: a part of {file}");
        }
        let phase = phase(env, &root).expect("there is a change at every point");
        let check = env.refit(&words("status", &root, &["--exit-code"]));
        match &*phase {
            "applied" => {
                assert!(now == of_first || contains(&now, &after), "{point:?}");
                expect_code(&check, 0);
                // What was dropped cannot be dropped again.
                if verb == "apply" || now == of_first {
                    expect_code(&env.refit(&second), 0);
                }
                let again = listing(&root);
                assert!(contains(&again, &after), "{point:?}: {verb} again");
            }
            _ => {
                expect_code(&check, 1);
                expect_code(&env.refit(&second), 2);
                assert_eq!(listing(&root), now, "{point:?}: refused, and changed");
            }
        }
        *seen.entry(phase).or_insert(0) += 1;
        expect_code(&env.refit(&words("revert", &root, &[subject.service])), 0);
        assert_eq!(listing(&root), before, "{point:?}: reverted");
        assert!(kept(&root).is_empty(), "{point:?}: {:?}", kept(&root));
        fs::remove_dir_all(&root).expect("the tree is ours");
    }
    println!(
        "counted: second form by {verb}: {calls} calls that change files, {} kills; status after them: {seen:?}",
        2 * calls
    );
    assert!(seen.len() > 1, "{seen:?}");
    Outcome::Pass
}

/// Whether all of `files` is there, beside what an earlier form placed: that goes last.
fn contains(now: &Listing, files: &Listing) -> bool {
    let is_placed = |path: &str| path.starts_with("usr/lib/refit");
    let mut all = now.iter();
    files
        .iter()
        .all(|(path, about)| now.get(path) == Some(about))
        && all.all(|(path, _)| files.contains_key(path) || is_placed(path))
}

/// Whatever confirmation is interrupted goes on, and can be taken back. Each file is where it was on trial, or where it
/// stays.
pub fn sweep_of_confirm(env: &TestEnv, subject: &Subject) -> Outcome {
    let (tree, how) = (subject.tree, subject.apply);
    let service = [subject.service];
    let reference = tree(env, "reference");
    let before = listing(&reference);
    expect_code(&env.refit(&words("apply", &reference, how)), 0);
    let trial = listing(&reference);
    let calls = killed(env, &words("confirm", &reference, &service), None);
    let kept = listing(&reference);
    assert!(calls > 10 && kept != trial, "{calls} calls were seen");
    let mut seen = BTreeMap::new();
    let points = Points::of(
        KillPoint::around(calls).flat_map(|point| [(point, "confirm"), (point, "revert")]),
    );
    for &(point, next) in &points.tried {
        let root = tree(env, "tree");
        expect_code(&env.refit(&words("apply", &root, how)), 0);
        let confirm = words("confirm", &root, &service);
        killed(env, &confirm, Some(point));
        let now = listing(&root);
        for file in subject.files {
            let stays = now.get(*file);
            assert!(
                stays == trial.get(*file) || stays == kept.get(*file),
                "{point:?}: a part of {file}"
            );
            let run = file.replacen("etc", "run", 1);
            assert!(
                stays.is_some() || now.contains_key(&run),
                "{point:?}: no {file}"
            );
        }
        let phase = phase(env, &root).expect("there is a change at every point");
        match &*phase {
            "applied" => assert!(now == trial || now == kept, "{point:?}"),
            _ => expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1),
        }
        *seen.entry(phase).or_insert(0) += 1;
        if next == "confirm" {
            expect_code(&env.refit(&confirm), 0);
            assert_eq!(listing(&root), kept, "{point:?}: confirmed again");
            expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
        }
        expect_code(&env.refit(&words("revert", &root, &service)), 0);
        assert_eq!(listing(&root), before, "{point:?}: reverted after {next}");
        fs::remove_dir_all(&root).expect("the tree is ours");
    }
    println!(
        "counted: confirm: {calls} calls that change files; kills: {points}; status after them: {seen:?}"
    );
    assert!(seen.len() > 1, "{seen:?}");
    Outcome::Pass
}

/// Files with mode, owner and a hash of the content.
type Listing = BTreeMap<String, (u32, u32, u32, u64)>;

/// All files of a tree; of the timer not the content, which is a time.
fn listing(root: &str) -> Listing {
    let mut found = crate::apply::listing(root);
    for (path, about) in &mut found {
        if path.starts_with("run/systemd/system/refit-undo-") && path.ends_with(".timer") {
            about.3 = 0;
        }
    }
    found
}

fn refit(env: &TestEnv, words: &[&str]) -> Command {
    let mut command = env.command(&refit_path());
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn killed(env: &TestEnv, words: &[&str], point: Option<KillPoint>) -> usize {
    let (calls, was_killed) = run_to(&mut refit(env, words), point).expect("it is traced");
    assert_eq!(was_killed, point.is_some(), "{point:?} of {words:?}");
    calls
}

/// The word of `status` for the service; `None` where it has no change.
fn phase(env: &TestEnv, root: &str) -> Option<String> {
    let output = env.refit(&words("status", root, &["--json", "-"]));
    expect_code(&output, 0);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let phase = status["services"].get(0)?["phase"].as_str();
    Some(phase.expect("a word").to_owned())
}

/// What refit keeps for itself, without the lock.
fn kept(root: &str) -> Vec<String> {
    let dir = Path::new(root).join("var/lib/refit/changes");
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("made by the first apply")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.retain(|name| name != "lock");
    names
}
