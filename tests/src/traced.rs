//! One run counted twice: by refit, and by strace around it.
//!
//! `strace -f` follows refit and all beneath it; refit itself makes no sync call. Both counts go by refit's
//! names of the calls.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::strace::{Call, Trace};
use crate::test_env::{TestEnv, described, expect_code, refit_path};

const CALLS: &str = "trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync,open,openat,openat2,pwritev2,\
                     fcntl,io_submit,io_uring_setup";

/// By refit's names of the calls; what is 0 is left out.
pub type Counts = BTreeMap<String, u64>;

/// A command that runs beneath refit and strace.
pub struct Running {
    child: Child,
    place: tempfile::TempDir,
}

/// What it did, and what both reported of it.
pub struct Traced {
    pub output: Output,
    pub trace: Trace,
    pub report: Value,
}

/// Starts a command under `strace -f refit run --quiet --json`. Skips the test where there is no strace.
pub fn start(env: &TestEnv, settings: &[&str], words: &[&str]) -> Running {
    env.require_command("strace");
    let place = tempfile::Builder::new()
        .prefix("traced-")
        .tempdir_in(env.dir())
        .expect("the test's directory is ours");
    let path = |name| place.path().join(name);
    let file = |name| File::create(path(name)).expect("the directory was just made");
    let child = env
        .command("strace")
        .args(["-f", "-qq", "-e", CALLS, "-e", "signal=none", "-o"])
        .arg(path("log"))
        .args(["--", &refit_path(), "run", "--quiet", "--json"])
        .arg(path("report.json"))
        .args(settings)
        .arg("--")
        .args(words)
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .stdin(Stdio::null())
        .spawn()
        .expect("strace is installed");
    Running { child, place }
}

impl Running {
    /// Waits for its end.
    pub fn finish(mut self) -> Traced {
        let status = self.child.wait().expect("it is our child");
        let read = |name: &str| fs::read(self.place.path().join(name)).unwrap_or_default();
        let output = Output {
            status,
            stdout: read("stdout"),
            stderr: read("stderr"),
        };
        let report = serde_json::from_slice(&read("report.json"))
            .unwrap_or_else(|error| panic!("no report: {error}\n{}", described(&output)));
        Traced {
            output,
            trace: Trace::parse(&String::from_utf8_lossy(&read("log"))),
            report,
        }
    }

    /// Whether it has ended already, which a server should not.
    #[allow(dead_code)]
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }
}

/// Runs a command that must exit with 0.
pub fn run(env: &TestEnv, settings: &[&str], words: &[&str]) -> Traced {
    let traced = start(env, settings, words).finish();
    expect_code(&traced.output, 0);
    traced
}

impl Traced {
    /// What strace saw of the calls that refit counts.
    pub fn straced(&self) -> Counts {
        let mut counts = Counts::new();
        for name in self.trace.calls.iter().flat_map(counted_as) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
        counts
    }

    /// One field of refit's totals: `seen`, `suppressed` or `real`.
    pub fn refit(&self, field: &str) -> Counts {
        self.report["totals"]
            .as_object()
            .expect("a report has totals")
            .iter()
            .map(|(call, counts)| {
                let count = counts[field].as_u64().expect("counts are numbers");
                (call.clone(), count)
            })
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// How many of refit's `unknown` lines there are of this kind.
    pub fn unknown(&self, what: &str) -> usize {
        self.report["coverage"]["unknown"]
            .as_array()
            .expect("a report says what is unknown")
            .iter()
            .filter(|unknown| unknown["what"] == what)
            .count()
    }

    /// Fails unless refit reached every process of the tree.
    #[track_caller]
    pub fn all_reached(&self) {
        let coverage = &self.report["coverage"];
        let silent = self.unknown("never reported") + self.unknown("unnamed");
        assert!(
            coverage["unreached"] == Value::Array(Vec::new()) && silent == 0,
            "not all reached: {coverage:#}"
        );
        assert!(coverage["processes_seen"].as_u64() > Some(0));
        assert_eq!(coverage["processes_seen"], coverage["processes_reached"]);
    }

    /// With sync=on: everything that strace saw, refit saw and passed on, and nothing else.
    #[track_caller]
    pub fn seen_is_what_strace_saw(&self) {
        let straced = self.straced();
        assert!(!straced.is_empty(), "strace saw nothing");
        assert_eq!(self.refit("seen"), straced, "refit saw, strace saw");
        assert_eq!(self.refit("real"), straced, "refit passed on, strace saw");
        assert_eq!(self.refit("suppressed"), Counts::new());
    }

    /// With sync=off: beside probes strace saw what refit counts as real, and no other call.
    #[track_caller]
    pub fn only_real_calls_reach_the_kernel(&self) {
        let suppressed = self.refit("suppressed");
        assert!(!suppressed.is_empty(), "nothing was suppressed");
        assert_eq!(
            self.refit("real"),
            self.straced(),
            "refit passed on, strace saw"
        );
        let sum = |names: &[&str]| -> u64 { names.iter().filter_map(|n| suppressed.get(*n)).sum() };
        let probes = |name, matches: fn(&str) -> bool| {
            let calls = self.trace.calls.iter();
            let count = calls.filter(|c| c.name == name && matches(&c.args)).count();
            u64::try_from(count).expect("a log is not that long")
        };
        // No answer without a question.
        let by_descriptor = probes("sync_file_range", |args| args.trim_end().ends_with(", 0"));
        assert!(by_descriptor >= sum(&["fsync", "fdatasync", "syncfs", "sync_file_range"]));
        assert!(probes("msync", |args| args.contains("MS_ASYNC")) >= sum(&["msync"]));
    }
}

/// The sync calls among the counts; opening a file is none.
pub fn syncs(counts: &Counts) -> u64 {
    let calls = counts.iter();
    let waits = calls.filter(|(name, _)| !name.contains("open") && !name.contains("O_DIRECT"));
    waits
        .filter(|(name, _)| *name != "io_uring_setup")
        .map(|(_, count)| count)
        .sum()
}

/// refit's names of a call that it counts: an open may ask for two things at once.
fn counted_as(call: &Call) -> impl Iterator<Item = &str> {
    let flags = call.flags();
    let succeeded = !call.result.starts_with('-');
    // A whole word: O_DIRECTORY is something else.
    let mut flag_words = flags.split(|c: char| !c.is_alphanumeric() && c != '_');
    let direct = succeeded && flag_words.any(|word| word == "O_DIRECT");
    let names = match call.name.as_str() {
        // With O_PATH the kernel ignores the other flags (open(2)).
        "open" | "openat" | "openat2" if flags.contains("O_PATH") => [None, None],
        "open" | "openat" | "openat2" => [
            call.is_sync().then_some("open(O_SYNC)"),
            direct.then_some("open(O_DIRECT)"),
        ],
        "fcntl" if flags.contains("F_SETFL") => [direct.then_some("fcntl(O_DIRECT)"), None],
        "io_uring_setup" => [succeeded.then_some("io_uring_setup"), None],
        "pwritev2" => [call.is_sync().then_some("pwritev2(RWF_SYNC)"), None],
        name => [call.is_sync().then_some(name), None],
    };
    names.into_iter().flatten()
}
