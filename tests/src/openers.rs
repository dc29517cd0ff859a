//! The guardian's processes that open files for programs, killed after they created one: the program gets it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::guardian::Waiting;
use crate::processes::children;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(a_killed_opener_fails_no_creation),
    test!(killed_with_the_guardian_it_fails_none_either),
];

/// Kills the opener, and the guardian's process that answers where `both`, between the creation of the file and all that
/// follows: strace makes them slow there. What the program printed, what was counted.
fn killed_after_creation(env: &TestEnv, both: bool) -> (String, Value) {
    env.require_root();
    env.require_command("strace");
    let (file, printed) = (env.path("created"), env.path("printed"));
    let program = env.program("static_create");
    let mut waiting = Waiting::start(env, &format!("{program} {file} >{printed}"));
    let [active, _] = waiting.guardians();
    let mut strace = env
        .command("strace")
        .args(["-f", "-qq", "-o", &env.path("log"), "-e", "trace=statx"])
        .args(["-e", "inject=statx:delay_enter=500000"])
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
    wait_until("the file to be created", || Path::new(&file).exists());
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
    assert_eq!(fs::read_to_string(&printed).expect("it is there"), "");
    if both {
        sys::kill_hard(active.cast_signed());
    }
    sys::kill_hard(opener.cast_signed());
    let report = waiting.finish();
    strace.wait().expect("it is our child");
    let printed = fs::read_to_string(&printed).expect("the shell made it");
    assert_eq!(fs::read_to_string(&file).expect("it was created"), "x");
    (printed, report)
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
