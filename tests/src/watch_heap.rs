//! `refit watch --heap -- COMMAND`: what is live, in each sample.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::sys::send_signal;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_leak_is_what_is_live).limit_seconds(300),
    test!(what_is_kept_free_is_not_live).limit_seconds(300),
    test!(what_is_not_counted_or_not_known_is_told),
];

/// The samples between which the program grows, and its steps after each. refit is stopped meanwhile: in the middle of a
/// step more is live than after it.
const SAMPLES: usize = 12;
const STEPS: usize = 10;
/// In so many the memory was read once, however small the budget for that is.
const MOST_SAMPLES: usize = 50;

/// Of a program of known growth (tests/programs/memory_kinds.c): the truth of this term at the end, bytes requested in
/// each sample, and what the end tells.
fn watched(env: &TestEnv, kind: &str, term: &str) -> (u64, Vec<u64>, String) {
    env.require_real_processor("1 % of it reads no memory");
    let (seed, json) = (std::process::id().to_string(), env.path("series.json"));
    let words = ["watch", "--heap", "--batch", "--interval", "100ms"];
    let program = env.program("memory_kinds");
    let of = [
        "--json",
        &json,
        "--",
        &program,
        kind,
        &seed,
        &env.path("mapped"),
    ];
    let mut refit = env.refit_command(&[&words[..], &of].concat());
    let refit = refit.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut refit = refit.stderr(Stdio::piped()).spawn().expect("refit starts");
    let pid = refit.id();
    let mut steps = refit.stdin.take().expect("it is piped");
    let answers = refit.stdout.take().expect("it is piped");
    let mut answers = BufReader::new(answers)
        .lines()
        .map(|line| line.expect("text"));
    let lines = refit.stderr.take().expect("it is piped");
    let mut lines = BufReader::new(lines)
        .lines()
        .map(|line| line.expect("text"));
    let (mut told, mut shown) = (Vec::new(), None);
    let mut sample = || {
        let mut memory = None;
        for line in lines.by_ref() {
            let is_last = line.contains("  heap: ");
            memory = memory.or_else(|| pss(&line));
            told.push(line);
            if is_last {
                break;
            }
        }
        let was_read = memory != shown;
        shown = memory;
        was_read
    };
    answers.next().expect("it tells its seed");
    let mut last = String::new();
    for _ in 0..SAMPLES {
        // What grows is known where all memory was read anew, which on a busy machine is not in each sample.
        (0..MOST_SAMPLES).find(|_| sample());
        stop(pid);
        for _ in 0..STEPS {
            steps.write_all(b"\n").expect("it reads");
            last = answers.next().expect("it answers");
        }
        send_signal(pid.cast_signed(), libc::SIGCONT);
    }
    // The first of them may have been read before the last step.
    sample();
    sample();
    drop(steps);
    told.extend(lines);
    let status = refit.wait().expect("it is our child");
    let told = told.join("\n");
    assert!(status.success(), "{status}: {told}");
    let mut truths = last.split(' ');
    let truth = truths.find_map(|word| word.strip_prefix(term)?.strip_prefix('='));
    let truth = truth.and_then(|text| text.parse().ok());
    let text = fs::read_to_string(&json).expect("it was written");
    let series: Value = serde_json::from_str(&text).expect("it is JSON");
    let samples = series["samples"].as_array().expect("a list").iter();
    let heaps = samples
        .map(|sample| &sample["heap"])
        .filter(|heap| heap.is_object());
    let live = heaps.map(|heap| {
        let [requested, usable] = ["requested_bytes", "usable_bytes"].map(|key| number(&heap[key]));
        assert!(requested <= usable && number(&heap["blocks"]) > 0, "{heap}");
        requested
    });
    let live: Vec<u64> = live.collect();
    assert!(live.len() >= SAMPLES, "{told}");
    (truth.expect("a number"), live, told)
}

/// The first amount of memory in a row of a sample, as it is shown.
fn pss(row: &str) -> Option<String> {
    let mut cells = row.split("  ").map(str::trim);
    let is_memory = |cell: &&str| cell.ends_with("iB") || cell.ends_with(" B");
    cells.find(is_memory).map(str::to_owned)
}

/// Returns when all threads of a process are stopped.
fn stop(pid: u32) {
    send_signal(pid.cast_signed(), libc::SIGSTOP);
    wait_until("it is stopped", || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        threads.flatten().all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // After the name, which may hold spaces (proc_pid_stat(5)).
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
        })
    });
}

fn a_leak_is_what_is_live(env: &TestEnv) -> Outcome {
    let (leaked, live, told) = watched(env, "leak", "live");
    let most = live.iter().max().copied().unwrap_or(0);
    assert!(leaked > 100_000, "{leaked}");
    let is_that = most >= leaked && most <= leaked + leaked / 20 + (1 << 20);
    assert!(is_that, "{most} of {leaked}: {told}");
    assert!(told.contains("heap: what is live grows, +"), "{told}");
    assert!(told.contains("]: a leak, or data that is needed"), "{told}");
    Outcome::Pass
}

fn what_is_kept_free_is_not_live(env: &TestEnv) -> Outcome {
    let (kept, live, told) = watched(env, "retained", "retained");
    let last = live.last().copied().unwrap_or(0);
    assert!(kept > 1 << 20 && last < kept / 2, "{last}, {kept}: {told}");
    let expected = "what grows is not what is live but what lies beside it, +";
    assert!(told.contains(expected), "{told}");
    Outcome::Pass
}

fn what_is_not_counted_or_not_known_is_told(env: &TestEnv) -> Outcome {
    let program = env.program("heap_sequence");
    let limited = format!("ulimit -v 60000; exec {program} 10");
    let none = env.program("static_true");
    for (command, expected) in [
        (
            &["sh", "-c", &limited] as &[&str],
            "heap not counted: heap_sequence ×1 (its address space is limited",
        ),
        (&[&none], "heap: unknown: no process was counted"),
        (
            &["sleep", "0.3"],
            "heap: whether it grows is unknown after ",
        ),
    ] {
        let words = ["watch", "--heap", "--batch", "--"];
        let output = env.refit(&[&words[..], command].concat());
        expect_code(&output, 0);
        let told = described(&output);
        assert!(told.contains(expected), "{expected}: {told}");
    }
    Outcome::Pass
}
