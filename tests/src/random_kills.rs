//! SIGKILL at random moments, again and again: of `refit compare RECIPE`, after each of which the next refit leaves
//! nothing; and of two `refit apply` or `revert` of different services at once, after each of which `status` tells the
//! truth and everything can be taken back.
//!
//! `REFIT_KILLS` is the number of kills (`make test-sequences`: 200); apply_kills has each call of one refit, this has two
//! that meet, and kills.rs what is beneath databases.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::apply::{DROP_IN, SETTINGS, listing, tree, words};
use crate::random::Random;
use crate::recipe_folder::RecipeFolder;
use crate::remains::{base, left_behind};
use crate::runner::{Outcome, Test};
use crate::takeaways::taken::sessions;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(of_a_comparison_of_a_recipe).limit_seconds(7200),
    test!(of_two_applies_at_once).limit_seconds(7200),
];

/// REFIT_KILLS, or a few.
pub fn wanted() -> usize {
    let wanted = std::env::var("REFIT_KILLS").ok();
    wanted.map_or(10, |text| text.parse().expect("REFIT_KILLS is a number"))
}

/// Kills it; whether it had not ended yet.
pub fn kill(mut child: Child) -> bool {
    let was_alive = child.try_wait().expect("it is our child").is_none();
    let _ = child.kill();
    child.wait().expect("it is our child");
    was_alive
}

fn of_a_comparison_of_a_recipe(env: &TestEnv) -> Outcome {
    let mut random = Random::of_now();
    let folder = RecipeFolder::service(env, "killed");
    let next = RecipeFolder::command(env, "next");
    let (mut alive, mut with_run, mut unheld, mut unnoted) = (0, 0, 0, 0);
    for n in 0..wanted() {
        let mut command = folder.comparison(&["--rounds", "400", "--precision", "0.0001%"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("refit starts");
        // Waits for nothing: it chooses the moment of the kill.
        sleep(Duration::from_millis(random.below(1500)));
        let mut sessions_left = sessions(env);
        alive += usize::from(kill(child));
        // What it left, which may have begun since.
        sessions_left.extend(sessions(env));
        with_run += usize::from(!sessions_left.is_empty());
        expect_code(&next.check(), 0);
        unheld += age_unheld(env);
        unnoted += sessions_left
            .iter()
            .filter(|session| age_unnoted(env, session))
            .count();
        let began = Instant::now();
        loop {
            let mut left = left_behind(env, "killed");
            let kept = sessions_left.iter().filter(|session| session.exists());
            left.extend(kept.map(|session| session.display().to_string()));
            if left.is_empty() {
                break;
            }
            // A process of the load ends by itself a moment later; another test's refit may look at a session just now.
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "kill {n}: {left:?}"
            );
            expect_code(&next.check(), 0);
        }
    }
    println!(
        "counted: {} kills, {alive} of a living one, {with_run} during a run, {unheld} before the lock of its directory, \
         {unnoted} before its session had a leader",
        wanted()
    );
    assert!(alive * 2 > wanted(), "{alive}");
    Outcome::Pass
}

/// The same of a session in which no first process is noted: its maker is at work, or was killed.
fn age_unnoted(env: &TestEnv, session: &Path) -> bool {
    let is_unnoted = fs::metadata(session.join("lock")).is_ok_and(|lock| lock.len() == 0);
    if is_unnoted {
        let path = session.display().to_string();
        expect_code(&env.run(&["touch", "-d", "2 minutes ago", &path]), 0);
    }
    is_unnoted
}

/// A directory whose maker was killed before it locked it may be another's in the making, and stays for a minute, which
/// is over now.
fn age_unheld(env: &TestEnv) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(base(env)).expect("it is ours").flatten() {
        let inside = fs::read_dir(entry.path()).into_iter().flatten().flatten();
        if inside.into_iter().all(|file| file.file_name() == "unheld") {
            let path = entry.path().display().to_string();
            expect_code(&env.run(&["touch", "-d", "2 minutes ago", &path]), 0);
            count += 1;
        }
    }
    count
}

const SERVICES: [&str; 2] = ["a", "b"];

/// The words of `status` for each service that has a change.
fn phases(env: &TestEnv, root: &str) -> BTreeMap<String, String> {
    let output = env.refit(&words("status", root, &["--json", "-"]));
    expect_code(&output, 0);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let services = status["services"].as_array().expect("a list").iter();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    services
        .map(|service| (word(&service["service"]), word(&service["phase"])))
        .collect()
}

/// What refit keeps for itself.
fn kept(root: &str) -> Vec<String> {
    let dir = fs::read_dir(Path::new(root).join("var/lib/refit/changes"));
    let names = dir
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != "lock")
        .collect()
}

fn of_two_applies_at_once(env: &TestEnv) -> Outcome {
    let mut random = Random::of_now();
    let how = |service| ["--yes", service, SETTINGS[0], SETTINGS[1]];
    let root = tree(env, "tree");
    let before = listing(&root);
    // As both are applied, and how long one of them takes here when it was done before.
    let (mut after, mut longest) = (BTreeMap::new(), Duration::ZERO);
    for _ in 0..2 {
        let began = Instant::now();
        for service in SERVICES {
            expect_code(&env.refit(&words("apply", &root, &how(service))), 0);
        }
        longest = began.elapsed() / 2;
        after = listing(&root);
        for service in SERVICES {
            expect_code(&env.refit(&words("revert", &root, &[service])), 0);
        }
        assert_eq!(listing(&root), before);
    }
    let (mut seen, mut alive, mut records_in_part) = (BTreeMap::new(), 0, 0);
    for n in 0..wanted() {
        let verb = ["apply", "revert"][n % 2];
        if verb == "revert" {
            for service in SERVICES {
                expect_code(&env.refit(&words("apply", &root, &how(service))), 0);
            }
        }
        let both = SERVICES.map(|service| {
            let of_apply = how(service);
            let more = if verb == "apply" {
                &of_apply[..]
            } else {
                &[service]
            };
            let mut command = env.refit_command(&words(verb, &root, more));
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.spawn().expect("refit starts")
        });
        let most = u64::try_from(longest.as_micros()).expect("it is short");
        for child in both {
            // Waits for nothing: it chooses the moment of the kill.
            sleep(Duration::from_micros(random.below(most)));
            alive += usize::from(kill(child));
        }
        let (now, phases) = (listing(&root), phases(env, &root));
        for service in SERVICES {
            let file = DROP_IN.replace("/a.", &format!("/{service}."));
            let phase = phases.get(&format!("{service}.service"));
            *seen.entry((verb, phase.cloned())).or_insert(0) += 1;
            let (is_before, is_after) = (
                now.get(&file) == before.get(&file),
                now.get(&file) == after.get(&file),
            );
            assert!(is_before || is_after, "kill {n}: a part of {file}");
            match phase.map(String::as_str) {
                None => assert!(is_before, "kill {n}: no change of {service}, and its file"),
                Some("applied") => assert!(is_after, "kill {n}: {service} applied, and no file"),
                Some(_) => {
                    let check = env.refit(&words("status", &root, &["--exit-code"]));
                    expect_code(&check, 1);
                }
            }
        }
        // Whatever it was, it is taken back, and nobody holds the lock.
        for service in SERVICES {
            let output = env.refit(&words("revert", &root, &[service]));
            let had_change = phases.contains_key(&format!("{service}.service"));
            let code = if had_change { 0 } else { 2 };
            assert_eq!(
                output.status.code(),
                Some(code),
                "kill {n}: {}",
                described(&output)
            );
        }
        assert_eq!(listing(&root), before, "kill {n}");
        // Who was killed before its record was whole has left that part of it, which its next change takes away.
        let parts = kept(&root);
        let is_part = |name: &String| name.starts_with('.') && name.ends_with(".refit-new");
        assert!(parts.iter().all(is_part), "kill {n}: {parts:?}");
        records_in_part += parts.len();
        for service in SERVICES {
            expect_code(&env.refit(&words("apply", &root, &how(service))), 0);
            expect_code(&env.refit(&words("revert", &root, &[service])), 0);
        }
        assert_eq!(listing(&root), before, "kill {n}");
        assert!(kept(&root).is_empty(), "kill {n}: {:?}", kept(&root));
    }
    println!(
        "counted: {} times two, {alive} of a living one, {records_in_part} left a part of a record; status after them: {seen:?}",
        wanted()
    );
    // Some come too late.
    assert!(alive * 8 > wanted(), "{alive}");
    Outcome::Pass
}
