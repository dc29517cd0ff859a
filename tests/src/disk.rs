//! `disk=`: real sync calls wait, or fail, as on another disk. How long each call took is what `--trace-sync` wrote
//! of it; a wait is held to its lower end only, since a busy machine can always take longer.

use serde_json::Value;

use crate::call_by_call::{self, CallByCall};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(each_flush_takes_as_long_as_it_is_set_to),
    test!(flushes_of_a_disk_wait_on_each_other),
    test!(what_does_not_happen_is_not_delayed),
    test!(the_draws_come_from_the_seed),
    test!(a_fault_comes_when_it_is_due_and_the_kernel_is_not_asked),
    test!(a_fault_is_for_what_could_be_synced),
    test!(writes_that_pass_the_disk_by_are_counted),
];

const MS: u64 = 1_000_000;

fn run(env: &TestEnv, settings: &[&str], command: &[&str]) -> CallByCall {
    call_by_call::run(env, "fsync,fdatasync", settings, command)
}

impl CallByCall {
    fn took_ns(&self) -> Vec<u64> {
        let took = |call: &Value| call["took_ns"].as_u64().expect("a number");
        self.calls.iter().map(took).collect()
    }

    fn errors(&self) -> Vec<i32> {
        let words = self.stdout.split_whitespace();
        words.map(|word| word.parse().expect("an errno")).collect()
    }

    fn total(&self, field: &str) -> u64 {
        self.report["totals"]["fsync"][field].as_u64().unwrap_or(0)
    }
}

fn each_flush_takes_as_long_as_it_is_set_to(env: &TestEnv) -> Outcome {
    let program = env.program("write_fsync");
    let traced = run(env, &["disk=3ms"], &[&program, "20", &env.path("f")]);
    let took = traced.took_ns();
    assert_eq!(took.len(), 20);
    assert!(took.iter().all(|ns| *ns >= 3 * MS), "{took:?}");
    assert!(traced.total("waited_ns") >= 60 * MS, "{:#}", traced.report);
    assert_eq!(traced.trace.calls.len(), 20, "and each is real");
    assert!(
        traced.messages.contains("disk=3ms (changes-behaviour)"),
        "{}",
        traced.messages
    );
    Outcome::Pass
}

fn flushes_of_a_disk_wait_on_each_other(env: &TestEnv) -> Outcome {
    let program = env.program("threads_fsync");
    let file = env.path("f");
    let traced = run(env, &["disk=2ms"], &[&program, "4", "10", &file]);
    let calls: Vec<(u64, u64)> = std::iter::zip(&traced.calls, traced.took_ns())
        .map(|(call, took)| {
            let ended = call["at_ns"].as_u64().expect("a number");
            (ended - took, ended)
        })
        .collect();
    assert_eq!(calls.len(), 40);
    let began = calls.iter().map(|call| call.0).min().expect("40 calls");
    let ended = calls.iter().map(|call| call.1).max().expect("40 calls");
    // Those that come while a flush runs share the next: each thread waits for ten of its own, and not all of them for
    // all forty. That no two flushes overlap is seen where one that came second took longer.
    assert!(ended - began >= 10 * 2 * MS, "{} ns", ended - began);
    assert!(
        traced.took_ns().iter().any(|ns| *ns >= 5 * MS / 2),
        "nobody waited for another's flush"
    );
    Outcome::Pass
}

fn what_does_not_happen_is_not_delayed(env: &TestEnv) -> Outcome {
    let program = env.program("write_fsync");
    let traced = run(
        env,
        &["disk=60s", "sync=off"],
        &[&program, "20", &env.path("f")],
    );
    assert_eq!(traced.total("suppressed"), 20);
    assert_eq!(traced.trace.calls.len(), 0);
    Outcome::Pass
}

fn the_draws_come_from_the_seed(env: &TestEnv) -> Outcome {
    let program = env.program("fsync_errors");
    let errors = |seed| {
        let settings = ["--seed", seed, "disk=fail:EIO,p=0.3"];
        run(env, &settings, &[&program, "40", &env.path("f")]).errors()
    };
    let first = errors("7");
    assert_eq!(first, errors("7"));
    assert_ne!(first, errors("8"));
    let failed = first.iter().filter(|error| **error == libc::EIO).count();
    assert!((3..25).contains(&failed), "{first:?}");
    Outcome::Pass
}

fn a_fault_comes_when_it_is_due_and_the_kernel_is_not_asked(env: &TestEnv) -> Outcome {
    let program = env.program("fsync_errors");
    let file = env.path("f");
    let (eio, enospc) = (libc::EIO, libc::ENOSPC);
    let tail = [libc::EINVAL, libc::EBADF];
    let due = |setting: &str, expected: &[i32]| {
        // Two processes share one disk.
        let half = (expected.len() / 2).to_string();
        let traced = run(env, &[setting], &[&program, &half, &file, "2"]);
        assert_eq!(traced.errors(), [expected, &tail].concat(), "{setting}");
        let failed = expected.iter().filter(|error| **error != 0).count();
        let error = setting.split([':', ',']).nth(1).expect("it names one");
        let told = format!("failed with {error} {failed} of ");
        let calls = format!(": fsync {failed}");
        assert_eq!(
            traced.messages.contains(&told) && traced.messages.contains(&calls),
            failed > 0,
            "{}",
            traced.messages
        );
        assert_eq!(
            traced.total("injected"),
            failed as u64,
            "{:#}",
            traced.report
        );
        let asked = traced.trace.calls.len();
        assert_eq!(asked, expected.len() - failed + tail.len(), "{setting}");
    };
    due("disk=fail:EIO", &[eio; 4]);
    due(
        "disk=fail:ENOSPC,every=3",
        &[0, 0, enospc, 0, 0, enospc, 0, 0],
    );
    due("disk=fail:EIO,after=5", &[0, 0, 0, 0, 0, eio, eio, eio]);
    Outcome::Pass
}

fn a_fault_is_for_what_could_be_synced(env: &TestEnv) -> Outcome {
    let program = env.program("fsync_errors");
    let traced = run(env, &["disk=fail:EIO"], &[&program, "1", &env.path("f")]);
    assert_eq!(traced.errors(), [libc::EIO, libc::EINVAL, libc::EBADF]);
    let scoped = ["disk@exe:somebody=fail:EIO"];
    let traced = run(env, &scoped, &[&program, "1", &env.path("f")]);
    assert_eq!(traced.errors()[0], 0);
    let scope = format!("disk@{}=fail:EIO", env.path("g"));
    let here = run(env, &[&scope], &[&program, "1", &env.path("g")]);
    assert_eq!(here.errors()[0], libc::EIO);
    let there = run(env, &[&scope], &[&program, "1", &env.path("f")]);
    assert_eq!(there.errors()[0], 0);
    Outcome::Pass
}

fn writes_that_pass_the_disk_by_are_counted(env: &TestEnv) -> Outcome {
    let program = env.program("pwritev2_dsync");
    let traced = run(env, &["disk=1ms"], &[&program, &env.file("f", "")]);
    let passed = traced.report["coverage"]["not_delayed"].as_u64();
    assert!(passed.is_some_and(|n| n > 0), "{:#}", traced.report);
    assert!(
        traced.messages.contains("not delayed: "),
        "{}",
        traced.messages
    );
    Outcome::Pass
}
