//! The guardian's processes that open files for programs, killed after they created one: the program gets it.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::guardian::{Waiting, named};
use crate::processes::children;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(a_killed_opener_fails_no_creation),
    test!(killed_with_the_guardian_it_fails_none_either),
];

/// Kills the opener, and the guardian's process that answers where `both`, between the creation of the file and all that
/// follows: strace makes them slow there; the more so, until the kill comes before the answer. What the program printed,
/// what was counted.
fn killed_after_creation(env: &TestEnv, both: bool) -> (String, Value) {
    env.require_root();
    let mut delay_us = 500_000;
    loop {
        if let Some(found) = killed_within(env, both, delay_us) {
            return found;
        }
        delay_us *= 2;
    }
}

/// The same; `None` where the program had its answer before the kill.
fn killed_within(env: &TestEnv, both: bool, delay_us: u32) -> Option<(String, Value)> {
    env.require_command("strace");
    let (file, printed) = (env.path("created"), env.path("printed"));
    let program = env.program("static_create");
    let _ = fs::remove_file(&file);
    let mut waiting = Waiting::start(env, &format!("{program} {file} >{printed}"));
    let [active, _] = waiting.guardians();
    let mut strace = env
        .command("strace")
        .args(["-f", "-qq", "-o", &env.path("log"), "-e", "trace=statx"])
        .args(["-e", &format!("inject=statx:delay_enter={delay_us}")])
        .args(["-p", &active.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .expect("strace is installed");
    let tracer = format!("TracerPid:\t{}\n", strace.id());
    wait_until("strace to trace", || {
        let status = fs::read_to_string(format!("/proc/{active}/status"));
        status.is_ok_and(|status| status.contains(&tracer))
    });
    waiting.begin();
    wait_until("the file to be created", || {
        fs::exists(&file).is_ok_and(|is| is)
    });
    let [opener] = children(active)
        .into_iter()
        .filter(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name == "refit-opener\n")
        })
        .collect::<Vec<_>>()[..]
    else {
        panic!("not one opener");
    };
    let told = fs::read_to_string(&printed).expect("it is there");
    let comes_late = !told.is_empty();
    if both {
        sys::kill_hard(active.cast_signed());
    }
    sys::kill_hard(opener.cast_signed());
    let report = waiting.finish();
    strace.wait().expect("it is our child");
    let printed = fs::read_to_string(&printed).expect("the shell made it");
    assert_eq!(fs::read_to_string(&file).expect("it was created"), "x");
    if comes_late {
        // The next one has a copy of refit at the same place.
        let refit = PathBuf::from(env.path("refit"));
        wait_until("the guardian to end", || {
            let names = ["refit-guardian", "refit-opener"];
            names.iter().all(|name| named(&refit, name).is_empty())
        });
        return None;
    }
    Some((printed, report))
}

fn a_killed_opener_fails_no_creation(env: &TestEnv) -> Outcome {
    let (printed, report) = killed_after_creation(env, false);
    assert_eq!(printed, "0 1\n", "{report:#}");
    assert_eq!(
        report["totals"]["open(O_SYNC)"]["suppressed"], 1,
        "{report:#}"
    );
    Outcome::Pass
}

fn killed_with_the_guardian_it_fails_none_either(env: &TestEnv) -> Outcome {
    let (printed, report) = killed_after_creation(env, true);
    assert_eq!(printed, "0 1\n", "{report:#}");
    Outcome::Pass
}
