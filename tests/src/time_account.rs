//! The account of a run's time: each part against what a program knows of itself (tests/programs/time_truth.c).

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::compared::printed;
use crate::places::public;
use crate::random::Random;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, refit_path};

pub const TESTS: &[Test] = &[
    test!(each_part_is_what_the_program_did).limit_seconds(180),
    test!(mixtures_add_up).limit_seconds(180),
    test!(a_short_program_has_no_account),
    test!(processes_too_short_to_be_seen_are_told),
    test!(a_program_with_more_rights_is_unknown),
];

const PARTS: [&str; 12] = [
    "cpu", "timer", "sync", "network", "poll", "epoll", "pipe", "child", "lock", "thread", "idle",
    "flock",
];

/// Of all time: how far a part may be from the truth.
const CLOSE: f64 = 0.05;
/// Of all time: what may be unknown.
const UNKNOWN: f64 = 0.02;

/// A server that answers each connection's line `MS` so many milliseconds later. It ends with the tests.
fn late_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it has one").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    port
}

fn answer(stream: TcpStream) {
    let mut line = String::new();
    if BufReader::new(&stream).read_line(&mut line).is_ok() {
        thread::sleep(Duration::from_millis(
            line.trim().parse().unwrap_or_default(),
        ));
        // The program may have been ended.
        let _ = (&stream).write_all(b"x");
    }
}

/// The account of a run, and what the program printed.
fn account(env: &TestEnv, command: &[&str]) -> (Value, String, String) {
    let json = env.path("run.json");
    let output = env.refit(&[&["run", "--json", &json, "--"], command].concat());
    expect_code(&output, 0);
    let text = fs::read_to_string(&json).expect("it was written");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (result["time"].clone(), printed(&output), told)
}

fn expect_truth(env: &TestEnv, port: u16, parts: &[String]) {
    let program = env.program("time_truth");
    let port = port.to_string();
    let words = [&program, &port]
        .into_iter()
        .chain(parts)
        .map(|word| &**word);
    let (time, printed, told) = account(env, &words.collect::<Vec<_>>());
    let mut truth: BTreeMap<&str, f64> = BTreeMap::new();
    for line in printed.lines() {
        let (activity, ns) = line.split_once(' ').expect("two words");
        *truth.entry(activity).or_default() += ns.parse::<f64>().expect("a number");
    }
    let all = time["thread_ns"].as_f64().expect("there is an account");
    let executables = time["executables"].as_object().expect("a map");
    let of = |activity: &str| -> f64 {
        executables
            .values()
            .filter_map(|parts| parts[activity].as_f64())
            .sum()
    };
    // Its start and its end, which it does not know of; and what it takes for a wait is also one for a processor.
    let outside = (all - truth.values().sum::<f64>()).max(0.0) + of("runnable");
    // Where the machine let refit wait, what happened meanwhile was not seen.
    let outside = outside + 2.0 * time["longest_pause_ns"].as_f64().expect("a number");
    for activity in [
        "cpu", "timer", "sync", "network", "pipe", "child", "lock", "thread", "idle", "unknown",
    ] {
        let true_ns = truth.get(activity).copied().unwrap_or_default();
        let limit = if activity == "unknown" {
            UNKNOWN
        } else {
            CLOSE
        };
        assert!(
            (of(activity) - true_ns).abs() <= limit * all + outside,
            "{parts:?}: {activity}: {} ms, not {}; of {} ms: {time:#}\n{printed}\n{told}",
            of(activity) / 1e6,
            true_ns / 1e6,
            all / 1e6
        );
    }
    let sum: f64 = executables
        .values()
        .filter_map(Value::as_object)
        .flat_map(|parts| parts.values())
        .filter_map(Value::as_f64)
        .sum();
    assert!((sum - all).abs() < 1.0, "it adds up: {sum} and {all}");
    if truth.contains_key("network") {
        assert!(told.contains(&format!("(127.0.0.1:{port} ")), "{told}");
    }
}

fn each_part_is_what_the_program_did(env: &TestEnv) -> Outcome {
    let port = late_server();
    for part in PARTS {
        expect_truth(env, port, &[format!("{part}:900")]);
    }
    Outcome::Pass
}

fn mixtures_add_up(env: &TestEnv) -> Outcome {
    let port = late_server();
    let mut random = Random::of_now();
    for _ in 0..20 {
        let parts: Vec<String> = (0..4)
            .map(|_| {
                let part = PARTS[random.below(PARTS.len() as u64) as usize];
                format!("{part}:{}", 100 + random.below(400))
            })
            .collect();
        expect_truth(env, port, &parts);
    }
    Outcome::Pass
}

fn a_short_program_has_no_account(env: &TestEnv) -> Outcome {
    let (time, ..) = account(env, &["true"]);
    assert!(time.is_null(), "{time}");
    Outcome::Pass
}

/// Each of them lives for about a millisecond.
fn processes_too_short_to_be_seen_are_told(env: &TestEnv) -> Outcome {
    let script = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i + 1)); done";
    let (time, _, told) = account(env, &["sh", "-c", script]);
    let unseen = time["unseen_cpu_ns"].as_u64().expect("a number");
    assert!(unseen > 0, "{time:#}");
    assert!(
        told.contains("in processes that were not seen to their end"),
        "{told}"
    );
    Outcome::Pass
}

/// What a set-id program waits for, its caller may not see.
fn a_program_with_more_rights_is_unknown(env: &TestEnv) -> Outcome {
    env.require_root();
    let sleep = public(env, "/bin/sleep");
    fs::set_permissions(&sleep, Permissions::from_mode(0o4755)).expect("ours");
    let refit = public(env, &refit_path());
    let script = format!("cd /; exec {refit} run -- {sleep} 0.7");
    let output = env.run(&[
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "env",
        "-i",
        "PATH=/usr/bin:/bin",
        "sh",
        "-c",
        &script,
    ]);
    expect_message(&output, 0, "blocked on unknown");
    Outcome::Pass
}
