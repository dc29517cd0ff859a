//! Several `refit apply`, `confirm` and `revert` at once, in one tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::apply::{DROP_IN, SETTINGS, listing, tree, words};
use crate::runner::{Outcome, Test};
use crate::sys::kill_hard;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, wait_until};

pub const TESTS: &[Test] = &[
    test!(ten_of_the_same_are_one),
    test!(ten_different_ones_do_not_mix),
    test!(ten_services_are_changed_at_once),
    test!(the_first_ones_of_a_tree_make_its_lock).limit_seconds(120),
    test!(apply_confirm_and_revert_do_not_mix).limit_seconds(120),
    test!(the_next_one_goes_on_when_one_is_killed),
    test!(one_that_does_not_end_is_named).limit_seconds(120),
];

const LOCK: &str = "var/lib/refit/changes/lock";

/// refit commands that were started and not waited for.
struct Started(Vec<Child>);

impl Started {
    fn start(env: &TestEnv, each: &[Vec<&str>]) -> Started {
        let start = |words: &Vec<&str>| {
            let mut command = env.refit_command(words);
            command.stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("refit starts")
        };
        Started(each.iter().map(start).collect())
    }

    /// Waits until each of them has the lock's file open, and waits for the lock therefore.
    fn all_wait(&self, root: &str) {
        let lock = Path::new(root).join(LOCK);
        let waits = |child: &Child| {
            let Ok(all) = fs::read_dir(format!("/proc/{}/fd", child.id())) else {
                return false;
            };
            all.flatten()
                .any(|fd| fs::read_link(fd.path()).is_ok_and(|file| file == lock))
        };
        wait_until("all wait for the lock", || self.0.iter().all(waits));
    }

    fn end(self) -> Vec<Output> {
        let all = self.0.into_iter();
        all.map(|child| child.wait_with_output().expect("it is a child"))
            .collect()
    }
}

/// One process that holds the lock of a tree.
fn holder(env: &TestEnv, root: &str) -> Child {
    env.require_command("flock");
    let lock = Path::new(root).join(LOCK);
    fs::create_dir_all(lock.parent().expect("it has one")).expect("the tree is ours");
    let mut command = Command::new("flock");
    command.args(["--no-fork", "--exclusive"]).arg(&lock);
    command.args(["sh", "-c", "echo; exec sleep 1000"]);
    command.stdout(Stdio::piped());
    let mut child = command.spawn().expect("flock starts");
    let mut line = [0];
    let stdout = child.stdout.as_mut().expect("it is piped");
    std::io::Read::read_exact(stdout, &mut line).expect("it has the lock");
    child
}

fn killed(mut holder: Child) {
    kill_hard(i32::try_from(holder.id()).expect("process ids are ints"));
    holder.wait().expect("it is a child");
}

/// All of them wait for the lock before one of them gets it.
pub fn together(env: &TestEnv, root: &str, each: &[Vec<&str>]) -> Vec<Output> {
    let first = holder(env, root);
    let all = Started::start(env, each);
    all.all_wait(root);
    killed(first);
    all.end()
}

pub fn count(outputs: &[Output], code: i32, text: &str) -> usize {
    let is_so = |output: &&Output| {
        let all = [&output.stdout[..], &output.stderr].concat();
        output.status.code() == Some(code) && String::from_utf8_lossy(&all).contains(text)
    };
    outputs.iter().filter(is_so).count()
}

pub fn all_described(outputs: &[Output]) -> String {
    outputs.iter().map(described).collect()
}

fn ten_of_the_same_are_one(env: &TestEnv) -> Outcome {
    let reference = tree(env, "reference");
    let apply = ["--yes", "a", SETTINGS[0], SETTINGS[1]];
    expect_code(&env.refit(&words("apply", &reference, &apply)), 0);
    let after = listing(&reference);
    let root = tree(env, "tree");
    let before = listing(&root);
    let outputs = together(env, &root, &vec![words("apply", &root, &apply); 10]);
    let all = all_described(&outputs);
    assert_eq!(count(&outputs, 0, "applied in the tree"), 1, "{all}");
    assert_eq!(count(&outputs, 0, "nothing to do"), 9, "{all}");
    assert_eq!(listing(&root), after);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);

    let outputs = together(env, &root, &vec![words("revert", &root, &["a"]); 10]);
    let all = all_described(&outputs);
    assert_eq!(count(&outputs, 0, "reverted"), 1, "{all}");
    assert_eq!(count(&outputs, 2, "has no change of refit's"), 9, "{all}");
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// Each that ends well is in effect, and no other: whoever planned before another one was made does nothing.
fn ten_different_ones_do_not_mix(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let settings: Vec<String> = (0..10).map(|n| format!("env.WORD{n}={n}")).collect();
    let each: Vec<Vec<&str>> = settings
        .iter()
        .map(|one| vec!["apply", "--root", &root, "--yes", "a", SETTINGS[0], one])
        .collect();
    let outputs = together(env, &root, &each);
    let all = all_described(&outputs);
    let made = count(&outputs, 0, "applied in the tree");
    let late = count(&outputs, 2, "what would be done has changed");
    assert!(made >= 1 && made + late == 10, "{all}");
    let text = fs::read_to_string(Path::new(&root).join(DROP_IN)).expect("the drop-in");
    for (output, setting) in outputs.iter().zip(&settings) {
        let line = format!("Environment=\"{}\"", setting.replacen("env.", "", 1));
        assert_eq!(
            text.contains(&line),
            output.status.success(),
            "{setting}: {text}"
        );
    }
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn ten_services_are_changed_at_once(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let names: Vec<String> = (0..10).map(|n| format!("service{n}")).collect();
    for name in &names {
        let unit = format!("{root}/usr/lib/systemd/system/{name}.service");
        fs::write(unit, "[Service]\nExecStart=/bin/a\n").expect("the tree is ours");
    }
    let before = listing(&root);
    let each = |verb: &'static str, more: &[&'static str]| -> Vec<Output> {
        let of_one = |name| [&words(verb, &root, &[name])[..], more].concat();
        let all: Vec<Vec<&str>> = names.iter().map(|name| of_one(name)).collect();
        together(env, &root, &all)
    };
    let outputs = each("apply", &["--yes", SETTINGS[0], SETTINGS[1]]);
    let applied = count(&outputs, 0, "applied in the tree");
    assert_eq!(applied, 10, "{}", all_described(&outputs));
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_code(&status, 0);
    let text = String::from_utf8_lossy(&status.stdout);
    assert_eq!(text.matches(".service: applied\n").count(), 10, "{text}");
    let outputs = each("revert", &[]);
    let reverted = count(&outputs, 0, "reverted");
    assert_eq!(reverted, 10, "{}", all_described(&outputs));
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// Nothing holds them back: the directory of the records is not there yet.
fn the_first_ones_of_a_tree_make_its_lock(env: &TestEnv) -> Outcome {
    let mut seen = BTreeMap::new();
    for round in 0..20 {
        let root = tree(env, &format!("tree{round}"));
        let before = listing(&root);
        let apply = |service| words("apply", &root, &["--yes", service, SETTINGS[0]]);
        let each: Vec<Vec<&str>> = (0..8_usize).map(|n| apply(["a", "b"][n % 2])).collect();
        let outputs = Started::start(env, &each).end();
        let applied = count(&outputs, 0, "applied in the tree");
        let nothing = count(&outputs, 0, "nothing to do");
        let all = all_described(&outputs);
        assert_eq!((applied, nothing), (2, 6), "{all}");
        expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
        let revert = |n: usize| words("revert", &root, &[["a", "b"][n % 2]]);
        let each: Vec<Vec<&str>> = (0..8).map(revert).collect();
        let outputs = Started::start(env, &each).end();
        let reverted = count(&outputs, 0, "reverted");
        let none = count(&outputs, 2, "has no change of refit's");
        assert_eq!((reverted, none), (2, 6), "{}", all_described(&outputs));
        assert_eq!(listing(&root), before);
        *seen.entry((applied, nothing)).or_insert(0) += 1;
        fs::remove_dir_all(&root).expect("the tree is ours");
    }
    println!("counted: 20 trees, applied and not needed: {seen:?}");
    Outcome::Pass
}

/// Whoever comes first, each has a whole state before it.
fn apply_confirm_and_revert_do_not_mix(env: &TestEnv) -> Outcome {
    let reference = tree(env, "reference");
    let before = listing(&reference);
    let trial = ["--yes", "--trial", "a", SETTINGS[0], SETTINGS[1]];
    expect_code(&env.refit(&words("apply", &reference, &trial)), 0);
    let tried = listing(&reference);
    expect_code(&env.refit(&words("confirm", &reference, &["a"])), 0);
    let kept = listing(&reference);
    let mut ends = BTreeMap::new();
    for round in 0..20 {
        let root = tree(env, &format!("tree{round}"));
        if round % 2 == 1 {
            expect_code(&env.refit(&words("apply", &root, &trial)), 0);
        }
        let each = [
            words("apply", &root, &trial),
            words("confirm", &root, &["a"]),
            words("revert", &root, &["a"]),
        ];
        let each: Vec<Vec<&str>> = (0..9).map(|n| each[(n + round) % 3].clone()).collect();
        let outputs = together(env, &root, &each);
        for output in &outputs {
            let code = output.status.code();
            assert!([Some(0), Some(2)].contains(&code), "{}", described(output));
            let printed = !output.stdout.is_empty() || !output.stderr.is_empty();
            assert!(printed, "{}", described(output));
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!text.contains("interrupted"), "{}", described(output));
        }
        let status = env.refit(&words("status", &root, &["--exit-code"]));
        expect_code(&status, 0);
        let text = String::from_utf8_lossy(&status.stdout);
        let (name, meant) = match text.lines().next().unwrap_or_default() {
            "nothing is applied" => ("nothing", &before),
            "a.service: applied, until a reboot" => ("a trial", &tried),
            "a.service: applied" => ("kept", &kept),
            other => panic!("{other}"),
        };
        assert_eq!(listing(&root), *meant, "{text}");
        *ends.entry(name).or_insert(0) += 1;
        fs::remove_dir_all(&root).expect("the tree is ours");
    }
    println!("counted: 180 commands, 20 ends: {ends:?}");
    assert!(ends.len() > 1, "{ends:?}");
    Outcome::Pass
}

fn the_next_one_goes_on_when_one_is_killed(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let first = holder(env, &root);
    let status = words("status", &root, &[]);
    let apply = words("apply", &root, &["--yes", "a", SETTINGS[0]]);
    let mut all = Started::start(env, &[apply, status]);
    all.all_wait(&root);
    for child in &mut all.0 {
        assert!(child.try_wait().expect("it is a child").is_none());
    }
    assert!(!Path::new(&root).join(DROP_IN).exists());
    killed(first);
    for output in all.end() {
        expect_code(&output, 0);
    }
    assert!(Path::new(&root).join(DROP_IN).exists());
    Outcome::Pass
}

fn one_that_does_not_end_is_named(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let first = holder(env, &root);
    let apply = words("apply", &root, &["--yes", "a", SETTINGS[0]]);
    let each = [apply, words("status", &root, &[])];
    for output in Started::start(env, &each).end() {
        expect_message(&output, 2, "another refit is changing services");
    }
    killed(first);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}
