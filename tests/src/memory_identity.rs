//! `run --heap`: the terms of resident memory are those of a program whose parts are known, of sizes that come from a
//! seed that nobody has seen before, and add up to what the kernel calls resident.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread::{scope, sleep};
use std::time::Duration;

use serde_json::Value;

use crate::deadline::Deadline;
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(the_terms_are_the_known_parts_and_add_up).limit_seconds(600),
    test!(the_terms_hold_above_other_allocators).limit_seconds(900),
    test!(what_was_given_back_is_not_in_use).limit_seconds(300),
    test!(a_ruby_that_grows_while_it_is_read_adds_up),
    test!(twenty_fresh_seeds_add_up)
        .limit_seconds(1800)
        .when_named(),
];

/// A reading that takes 1 s of a processor is followed by a pause of 100 s.
const LONGEST_PAUSE: Duration = Duration::from_secs(250);

/// What the program prints, and its memory as refit read it after that.
struct Read {
    truth: BTreeMap<String, f64>,
    memory: Value,
}

impl Read {
    /// Of a term, less than `without` of the same term.
    fn grown(&self, without: &Read, term: &str) -> f64 {
        self.term(term) - without.term(term)
    }

    fn term(&self, term: &str) -> f64 {
        let terms = self.memory["terms"].as_array().expect("a list");
        let found = terms.iter().find(|one| one["term"] == term);
        number(&found.unwrap_or_else(|| panic!("no {term}"))["rss_bytes"]) as f64
    }
}

/// What the program of the known parts prints, and its memory.
fn read(env: &TestEnv, settings: &[&str], seed: u64) -> Read {
    let program = env.program("memory_parts");
    let words = [
        &program,
        &*seed.to_string(),
        &env.path(&format!("mapped-{seed}")),
    ];
    // Several are read at once.
    read_of(env, settings, &words, &format!("report-{seed}.json"))
}

/// Holds a program that ends with its input until it has been read after it printed a line.
fn read_of(env: &TestEnv, settings: &[&str], words: &[&str], json: &str) -> Read {
    let json = env.path(json);
    let options = [&["run", "--heap"], settings, &["--json", &json, "--"]].concat();
    let mut refit = env.refit_command(&[&options, words].concat());
    refit.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut refit = refit.spawn().expect("refit starts");
    let mut truth = String::new();
    BufReader::new(refit.stdout.take().expect("it is piped"))
        .read_line(&mut truth)
        .expect("it prints text");
    // Nothing changes after that: the last reading is kept, as none is larger.
    wait_for_reading(refit.id());
    drop(refit.stdin.take());
    assert!(refit.wait().expect("it is our child").success());
    let report: Value =
        serde_json::from_slice(&fs::read(&json).expect("it was written")).expect("it is JSON");
    let memory = report["memory"].clone();
    let words = truth
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let truth = words.map(|(term, bytes)| {
        let bytes = bytes.parse().expect("the program prints numbers");
        (term.to_owned(), bytes)
    });
    Read {
        truth: truth.collect(),
        memory,
    }
}

fn what_was_given_back_is_not_in_use(env: &TestEnv) -> Outcome {
    const GIVEN_BACK: f64 = (64 << 20) as f64;
    let read = read_of(env, &[], &[&env.program("lazy_free")], "report.json");
    // The kernel may have taken some of them, were it short of memory.
    let (given_back, mappings) = (read.term("given back"), read.term("mappings"));
    assert!(given_back > 0.0 && given_back <= GIVEN_BACK, "{given_back}");
    assert!(mappings < 0.1 * GIVEN_BACK, "{mappings}");
    Outcome::Pass
}

/// Waits until refit has begun a reading, and ended it: each is made by a thread of its own.
pub fn wait_for_reading(refit: u32) {
    let threads = || -> BTreeSet<OsString> {
        let tasks = fs::read_dir(format!("/proc/{refit}/task")).expect("refit runs");
        let names = tasks.filter_map(|task| Some(task.ok()?.file_name()));
        names.collect()
    };
    let before = threads();
    let mut reading = BTreeSet::new();
    let mut deadline = Deadline::after(LONGEST_PAUSE);
    while reading.is_empty() || !threads().is_disjoint(&reading) {
        reading.extend(threads().difference(&before).cloned());
        assert!(!deadline.is_over(), "no reading within {deadline}");
        sleep(Duration::from_millis(1));
    }
}

/// What is wrong; nothing where each of `terms` grew within 5 % of the truth and the sum is within 2 %.
fn faults(env: &TestEnv, settings: &[&str], seed: u64, terms: &[&str]) -> Vec<String> {
    faults_beside(&read(env, settings, 0), env, settings, seed, terms)
}

/// The same, where the program is already read without any of its parts.
fn faults_beside(
    without: &Read,
    env: &TestEnv,
    settings: &[&str],
    seed: u64,
    terms: &[&str],
) -> Vec<String> {
    let with = read(env, settings, seed);
    let mut faults = Vec::new();
    for term in terms {
        let truth = with.truth[*term] - without.truth[*term];
        assert!(truth > 1e6, "{term}: {truth}");
        let found = with.grown(without, term);
        if (found / truth - 1.0).abs() > 0.05 {
            faults.push(format!("{term}: {found} for {truth}"));
        }
    }
    let untouched = with.memory["not_resident_bytes"]
        .as_f64()
        .expect("a number");
    if (untouched / with.truth["untouched"] - 1.0).abs() > 0.05 {
        faults.push(format!("not resident: {untouched} for {:?}", with.truth));
    }
    for read in [&with, without] {
        let unexplained = read.memory["unexplained_bytes"].as_f64().expect("a number");
        let resident = number(&read.memory["rss_bytes"]) as f64;
        if unexplained.abs() > 0.02 * resident {
            faults.push(format!("unexplained: {unexplained} of {resident}"));
        }
    }
    if !faults.is_empty() {
        faults.push(format!("seed {seed} {settings:?}: {:#}", with.memory));
    }
    faults
}

const ALL: [&str; 9] = [
    "live",
    "rounding",
    "headers",
    "fragments",
    "retained",
    "stacks",
    "mappings",
    "files",
    "shared",
];
/// What another allocator than glibc does with what is freed is not known to the program.
const OF_ANY_ALLOCATOR: [&str; 5] = ["live", "rounding", "stacks", "files", "shared"];

pub fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    1 + u64::from(since.expect("it is after 1970").subsec_nanos())
}

fn the_terms_are_the_known_parts_and_add_up(env: &TestEnv) -> Outcome {
    let seed = fresh_seed();
    println!("seed {seed}");
    let faults = faults(env, &[], seed, &ALL);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Outcome::Pass
}

fn the_terms_hold_above_other_allocators(env: &TestEnv) -> Outcome {
    for allocator in ["malloc=jemalloc", "malloc=mimalloc", "malloc=tcmalloc"] {
        let seed = fresh_seed();
        println!("{allocator}: seed {seed}");
        let faults = faults(env, &[allocator], seed, &OF_ANY_ALLOCATOR);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
    Outcome::Pass
}

/// Each is read while it starts.
fn a_ruby_that_grows_while_it_is_read_adds_up(env: &TestEnv) -> Outcome {
    env.require_command("ruby");
    let mut moved = 0;
    for code in [
        "1000.times.map { Thread.new { sleep } }; 10.times { fork { sleep 0.2 } }; Process.waitall",
        "Array.new(300_000) { |i| 'x' * (i % 200) }",
        "sleep 1",
    ] {
        for _ in 0..4 {
            let (output, report) = env.refit_json(&["run", "--heap", "--", "ruby", "-e", code]);
            expect_code(&output, 0);
            let memory = &report["memory"];
            // It may have ended before it was read.
            if let Some(unexplained) = memory["unexplained_bytes"].as_f64() {
                let resident = number(&memory["rss_bytes"]) as f64;
                assert!(unexplained.abs() <= 0.005 * resident, "{code}: {memory:#}");
                moved += number(&memory["rss_moved_bytes"]);
            }
        }
    }
    assert!(moved > 0, "none of them grew while it was read");
    Outcome::Pass
}

fn twenty_fresh_seeds_add_up(env: &TestEnv) -> Outcome {
    let first = fresh_seed();
    println!("seeds from {first}");
    let without = &read(env, &[], 0);
    // Nearly all of the time is the pause that refit makes after a reading: it passes for all of them at once.
    let faults: Vec<String> = scope(|scope| {
        let begin = |seed| scope.spawn(move || faults_beside(without, env, &[], seed, &ALL));
        let readers: Vec<_> = (first..first + 20).map(begin).collect();
        let ended = readers
            .into_iter()
            .map(|reader| reader.join().expect("it was read"));
        ended.flatten().collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Outcome::Pass
}
