//! `run --heap` where the address space is limited: the program gets as much as without refit, and the figures hold.

use std::process::Output;

use serde_json::Value;

use crate::heap::breaks;
use crate::ran::{base, number};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_limited_program_gets_what_it_gets_without_refit),
    test!(beneath_a_limit_requested_bytes_are_within_the_bounds),
];

/// Pages of refit's libraries, and the steps of malloc, in bytes.
const OF_LIBRARIES: u64 = 1 << 20;
/// What the C library has of its own.
const OF_LIBC: u64 = 100_000;

fn told(output: &Output) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.split_whitespace();
    words.map(|word| word.parse().expect("a number")).collect()
}

/// Runs a shell, which may set a limit.
fn run(env: &TestEnv, malloc: &str, script: &str) -> (Output, Value) {
    let (output, report) = env.refit_json(&["run", "--heap", malloc, "--", "sh", "-c", script]);
    expect_code(&output, 0);
    let all = report["heap"]["executables"].as_array().expect("a list");
    let found = all
        .iter()
        .find(|one| base(&one["executable"]).starts_with("heap_"));
    let entry = found.cloned().unwrap_or_default();
    (output, entry)
}

fn a_limited_program_gets_what_it_gets_without_refit(env: &TestEnv) -> Outcome {
    let program = env.program("heap_limit");
    for mib in [24_u64, 52, 70, 100, 200, 400] {
        let before = format!("ulimit -v {}; exec {program} 0", mib << 10);
        let own = format!("exec {program} {}", mib << 20);
        for script in [&before, &own] {
            let plain = env.run(&["sh", "-c", script]);
            expect_code(&plain, 0);
            let (output, entry) = run(env, "malloc=glibc", script);
            let (got, with) = (told(&plain)[0], told(&output)[0]);
            assert!(
                with + OF_LIBRARIES > got && with <= got,
                "{script}: {with} of {got} bytes"
            );
            if mib < 64 && *script == before {
                assert!(entry.is_null(), "{entry:#}");
                continue;
            }
            assert!(
                entry["gaps"].to_string().contains("counting ended early"),
                "{entry:#}"
            );
            let end = number(&entry["largest"]["end"]["requested_bytes"]);
            assert!(
                *script == own || end.abs_diff(with) < with / 30,
                "{with}: {entry:#}"
            );
        }
    }
    Outcome::Pass
}

fn beneath_a_limit_requested_bytes_are_within_the_bounds(env: &TestEnv) -> Outcome {
    let program = env.program("heap_sequence");
    for allocator in ["glibc", "jemalloc", "mimalloc", "tcmalloc"] {
        if breaks(env, allocator, &program, &["5000"]) {
            continue;
        }
        // mimalloc reserves a GiB for itself.
        let script = format!("ulimit -v 8000000; exec {program} 5000");
        let (output, entry) = run(env, &format!("malloc={allocator}"), &script);
        let [.., requested, usable, blocks] = told(&output)[..] else {
            panic!("{output:?}")
        };
        let largest = &entry["largest"];
        let end = |field| number(&largest["end"][field]);
        let bound = |field| number(&largest["without_table"][field]);
        let bounds = bound("least_requested_bytes")..=bound("most_requested_bytes");
        assert!(
            end("blocks").abs_diff(blocks) < 20
                && end("usable_bytes").abs_diff(usable) < OF_LIBC
                && *bounds.start() <= requested + OF_LIBC
                && *bounds.end() >= requested
                && bounds.contains(&end("requested_bytes"))
                && bounds.end() - bounds.start() < usable / 2,
            "{allocator} {requested} {usable} {blocks}: {largest:#}"
        );
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(" of them requested"), "{told}");
    }
    Outcome::Pass
}
