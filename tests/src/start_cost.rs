//! What a start beneath refit costs, in counts that depend neither on the machine's speed nor on what else it does:
//! the system calls of refit before it becomes the program, and those that the library adds to the program's.

use std::fs;

use crate::places;
use crate::runner::{Outcome, Test};
use crate::sys::arch::MORE_TO_MAP;
use crate::test;
use crate::test_env::{TestEnv, described, refit_path};

pub const TESTS: &[Test] = &[
    test!(a_quiet_start_makes_few_system_calls),
    test!(a_counted_start_makes_few_system_calls),
];

/// Of refit: 168 were measured on Debian 12 and 169 on Debian 13, whose `true` has one more note. The session of the run
/// before is removed meanwhile.
const OF_REFIT: usize = 169;
/// Of ld.so for the library, and of the library itself: 13 were measured.
const OF_LIBRARY: usize = 14;
/// The same where calls are counted: 27 were measured.
const OF_COUNTING_LIBRARY: usize = 27;

/// The system calls in a log of strace(1), before and after the second execve. Without those by which a debug build
/// looks at a descriptor that it closes, and without the reads of /proc/self/maps, whose number depends on the length of
/// paths.
fn calls(log: &str) -> (usize, usize) {
    let mut is_in_maps = false;
    let is_counted = |line: &&str| {
        is_in_maps |= line.contains("\"/proc/self/maps\"");
        is_in_maps &= !line.starts_with("close(");
        let is_of_maps = is_in_maps && line.starts_with("read(");
        line.contains('(') && !line.contains("F_GETFD") && !is_of_maps
    };
    let calls: Vec<&str> = log.lines().filter(is_counted).collect();
    let is_exec =
        |(at, line): (usize, &&str)| (line.starts_with("execve(") && at > 0).then_some(at);
    let split = calls.iter().enumerate().find_map(is_exec).unwrap_or(0);
    (split, of_program(calls[split..].iter().copied()))
}

/// Those of a program and its loader. Without munmap: what the loader gives back of an aligned mapping depends on the
/// address that it got.
fn of_program<'a>(calls: impl Iterator<Item = &'a str>) -> usize {
    calls.filter(|call| !call.starts_with("munmap(")).count()
}

fn a_quiet_start_makes_few_system_calls(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let start = format!("{} run --quiet sync=off -- /bin/true", refit_path());
    // No other test's sessions are there.
    let script = format!(
        "mount -t tmpfs none /run\n{start}\n{start}\n\
         strace -qq -o with {start}\nstrace -qq -o bare /bin/true"
    );
    let output = places::in_own_mounts(env, &script)
        .output()
        .expect("sh runs");
    assert!(output.status.success(), "{}", described(&output));
    let log = |name: &str| fs::read_to_string(env.path(name)).expect("strace wrote it");
    let (refit, program) = calls(&log("with"));
    let (_, bare) = calls(&log("bare"));
    assert!(refit > 0 && bare > 0, "refit {refit}, bare {bare}");
    assert!(
        refit <= OF_REFIT,
        "refit makes {refit} calls without the reads of its maps:\n{}",
        log("with")
    );
    assert!(
        program <= bare + OF_LIBRARY + MORE_TO_MAP,
        "the program makes {program} calls, bare {bare}:\n{}",
        log("with")
    );
    Outcome::Pass
}

fn a_counted_start_makes_few_system_calls(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let traced = |log: &str, prefix: &[&str]| {
        let words = ["strace", "-qq", "-o", log, "/bin/true"];
        let all: Vec<&str> = prefix.iter().chain(&words).copied().collect();
        let output = env.command(all[0]).args(&all[1..]).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{}", described(&output));
        fs::read_to_string(env.path(log)).expect("strace wrote it")
    };
    let bare = traced("bare", &[]);
    let with = traced(
        "with",
        &[
            &refit_path(),
            "run",
            "-q",
            "--json",
            "report",
            "sync=off",
            "--",
        ],
    );
    let (bare, calls) = (of_program(bare.lines()), of_program(with.lines()));
    assert!(bare > 0 && with.contains("/images/"), "{with}");
    assert!(
        calls <= bare + OF_COUNTING_LIBRARY + MORE_TO_MAP,
        "the program makes {calls} calls, bare {bare}:\n{with}"
    );
    Outcome::Pass
}
