//! `refit watch PID --per`: programs whose memory grows for one known reason, of sizes that come from a seed, are told
//! apart by what the kernel alone tells. A leak, internal and external fragmentation, and what an allocator keeps are
//! all the heap here: only a counting shim tells them apart.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::runner::{Outcome, Test};
use crate::sys::send_signal;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(each_kind_of_growth_is_told).limit_seconds(300),
    test!(twenty_fresh_seeds_of_each_kind_are_told)
        .limit_seconds(3600)
        .when_named(),
    test!(words_that_count_nothing_are_refused),
    test!(too_few_samples_give_no_verdict),
];

/// See [`KINDS`].
type Kind = (
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
);

/// Kind, verdict, and the row and the terms of the truth whose slopes agree.
const KINDS: &[Kind] = &[
    ("none", "no growth", None),
    (
        "leak",
        "the heap (leak, needed data, or fragmentation)",
        Some(("heap", "live")),
    ),
    (
        "logical",
        "the heap (leak, needed data, or fragmentation)",
        Some(("heap", "live")),
    ),
    (
        "internal",
        "the heap (leak, needed data, or fragmentation)",
        None,
    ),
    // Its truth is an upper bound, up to an eighth above what is found: see the program.
    (
        "external",
        "the heap (leak, needed data, or fragmentation)",
        None,
    ),
    (
        "retained",
        "the heap (leak, needed data, or fragmentation)",
        Some(("heap", "retained")),
    ),
    ("stacks", "stacks of threads", None),
    (
        "maps",
        "private mappings (mmap, or an allocator's)",
        Some(("mappings", "maps")),
    ),
    ("file", "pages of mapped files", Some(("files", "file"))),
    ("cow", "pages copied after a fork", Some(("copied", "cow"))),
    (
        "thp",
        "untouched parts of huge pages",
        Some(("huge, unused", "thp")),
    ),
];
/// Of each program: enough that what the smallest size adds is more than refit takes for no growth, whatever the seed.
const SAMPLES: usize = 45;

/// A program of known truth, which does some operations for each line that it gets.
struct Known {
    child: Child,
    /// Open for both ends, so that nobody waits for the other.
    _pipes: [File; 2],
    /// Its seed and its size.
    head: String,
    /// Lets it do some operations, and prints their count when they are done.
    per: String,
    /// What it prints of them.
    answers: String,
}

impl Known {
    fn start(env: &TestEnv, kind: &str, seed: u64) -> Known {
        let path = |name: &str| env.path(&format!("{kind}-{seed}.{name}"));
        let [steps, answered, answers] = ["steps", "answered", "answers"].map(path);
        let pipes = [&steps, &answered].map(|path| {
            expect_code(&env.run(&["mkfifo", path]), 0);
            let pipe = File::options().read(true).write(true).open(path);
            pipe.expect("it was just made")
        });
        // It sees the end of its steps when this end is closed.
        let steps_end = File::open(&steps).expect("it was just made");
        let answered_end = pipes[1].try_clone().expect("descriptors are left");
        let mut command = env.command(&env.program("memory_kinds"));
        command.args([kind, &seed.to_string(), &path("mapped")]);
        command.stdin(steps_end).stdout(answered_end);
        let child = command.spawn().expect("it was just compiled");
        // Nothing follows until a step is asked for.
        let mut head = String::new();
        let read = BufReader::new(&pipes[1]).read_line(&mut head);
        read.expect("it prints text");
        let per = format!("echo >{steps}; read -r line <{answered}; echo $line | tee -a {answers}");
        Known {
            child,
            _pipes: pipes,
            head,
            per,
            answers,
        }
    }

    /// Bytes of the terms (`live+external`) for each operation, after a third of them.
    fn truth(&self, terms: &str) -> f64 {
        let text = fs::read_to_string(&self.answers).expect("it is ours");
        let lines: Vec<&str> = text.lines().collect();
        let numbers = |line: &str| {
            let (operations, truths) = line.split_once(' ').expect("a count and terms");
            let number = |text: &str| text.parse::<f64>().expect("a number");
            let truth = |term: &str| {
                let mut truths = truths.split(' ');
                let found = truths.find_map(|word| word.strip_prefix(term)?.strip_prefix('='));
                number(found.expect("a term"))
            };
            (number(operations), terms.split('+').map(truth).sum::<f64>())
        };
        let (first, last) = (
            numbers(lines[lines.len() / 3]),
            numbers(lines[lines.len() - 1]),
        );
        (last.1 - first.1) / (last.0 - first.0)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What refit says of it after so many samples.
fn watched(env: &TestEnv, known: &Known, per: &str, samples: usize) -> String {
    let pid = known.child.id().to_string();
    let mut refit = env.refit_command(&["watch", &pid, "--interval", "100ms", "--per", per]);
    let mut refit = refit.stdout(Stdio::piped()).spawn().expect("refit starts");
    let mut lines = BufReader::new(refit.stdout.take().expect("it is piped"));
    for _ in 0..samples {
        let mut line = String::new();
        lines.read_line(&mut line).expect("it prints text");
        assert!(line.contains(" operations "), "{line:?}");
    }
    send_signal(
        i32::try_from(refit.id()).expect("process ids are ints"),
        libc::SIGINT,
    );
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("it prints text");
    assert!(refit.wait().expect("it is our child").success(), "{rest}");
    rest
}

/// What is wrong with the answer for one program; `None`: nothing.
fn fault(env: &TestEnv, kind: &Kind, seed: u64) -> Option<String> {
    let (kind, verdict, slopes) = kind;
    let known = Known::start(env, kind, seed);
    let page = watched(env, &known, &known.per, SAMPLES);
    let told = page.lines().find_map(|line| line.strip_prefix("verdict: "));
    let head = known.head.trim_end();
    if told != Some(verdict) {
        return Some(format!("{kind}, {head}: {page}"));
    }
    let (row, terms) = (*slopes)?;
    let truth = known.truth(terms);
    let line = page
        .lines()
        .find(|line| line.trim_start().starts_with(row))
        .unwrap_or_default();
    let found = line
        .split_once("grows: ")
        .map_or(f64::NAN, |(_, rest)| bytes(rest));
    let is_near = (found / truth - 1.0).abs() <= 0.1;
    (!is_near).then(|| format!("{kind}, {head}: {found} for {truth} bytes an operation: {page}"))
}

/// `48 KiB an operation …`.
fn bytes(text: &str) -> f64 {
    let mut words = text.split(' ');
    let number: f64 = words
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(f64::NAN);
    number
        * match words.next() {
            Some("B") => 1.0,
            Some("KiB") => 1024.0,
            Some("MiB") => 1_048_576.0,
            _ => f64::NAN,
        }
}

pub fn fresh_seed() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::from(since.expect("it is after 1970").subsec_nanos())
}

fn has_huge_pages() -> bool {
    let mode =
        fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
    !mode.contains("[never]") && own.contains("THP_enabled:\t1")
}

/// Faults of one kind for so many seeds, all at once.
fn faults(env: &TestEnv, kind: &Kind, seeds: u64) -> Vec<String> {
    // Before the threads, which would compile it all at once.
    env.program("memory_kinds");
    if kind.0 == "thp" && !has_huge_pages() {
        println!("not tried: thp, since this process may have no huge pages");
        return Vec::new();
    }
    let first = fresh_seed();
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..seeds)
            .map(|at| scope.spawn(move || fault(env, kind, first + at)))
            .collect();
        let ended = started
            .into_iter()
            .map(|one| one.join().expect("its assertions hold"));
        ended.flatten().collect()
    })
}

fn each_kind_of_growth_is_told(env: &TestEnv) -> Outcome {
    env.program("memory_kinds");
    let faults: Vec<String> = std::thread::scope(|scope| {
        let started: Vec<_> = KINDS
            .iter()
            .map(|kind| scope.spawn(move || faults(env, kind, 1)))
            .collect();
        started
            .into_iter()
            .flat_map(|one| one.join().expect("its assertions hold"))
            .collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Outcome::Pass
}

fn twenty_fresh_seeds_of_each_kind_are_told(env: &TestEnv) -> Outcome {
    let mut all = Vec::new();
    for kind in KINDS {
        let faults = faults(env, kind, 20);
        println!("{}: {} of 20", kind.0, 20 - faults.len());
        all.extend(faults);
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
    Outcome::Pass
}

fn words_that_count_nothing_are_refused(env: &TestEnv) -> Outcome {
    let own = std::process::id().to_string();
    for (words, expected) in [
        (
            &["watch", "--per", "echo 1"] as &[&str],
            "--per counts the operations of one process",
        ),
        (
            &["watch", "x", "--per", "echo 1"],
            "`x` is not the number of a process",
        ),
        (
            &["watch", "2147483647", "--per", "echo 1"],
            "process 2147483647 has ended",
        ),
        (
            &["watch", &own, "--per", "echo none"],
            "`echo none` gave no number of operations",
        ),
        (
            &["watch", &own, "--per", "echo 1; exit 3"],
            "gave no number of operations (exit status: 3)",
        ),
        (
            &["watch", &own, "--per", "echo 1", "--json", "x"],
            "cannot be used with",
        ),
    ] {
        let output = env.refit(words);
        expect_code(&output, 2);
        let message = described(&output);
        assert!(message.contains(expected), "{expected}: {message}");
    }
    Outcome::Pass
}

fn too_few_samples_give_no_verdict(env: &TestEnv) -> Outcome {
    let known = Known::start(env, "leak", 1);
    let page = watched(env, &known, &known.per, 5);
    assert!(page.contains("verdict: none yet"), "{page}");
    assert!(page.contains("and 27 are needed"), "{page}");
    // Nothing is done: there is nothing to tell growth against.
    let page = watched(env, &known, "echo 7", 27);
    let no_work = "the count of operations did not rise";
    assert!(page.contains(no_work), "{page}");
    Outcome::Pass
}
