//! One run seen from three sides: what refit printed, what it wrote as JSON, and what strace saw.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::strace::Trace;
use crate::test_env::{TestEnv, expect_code, refit_path};

/// One run: what was printed, refit's report, and what strace saw of it.
pub struct Ran {
    pub stdout: String,
    /// refit's own lines.
    pub messages: String,
    pub report: Value,
    pub trace: Trace,
}

/// Runs a command that must exit with 0 under `strace -f refit run`.
pub fn run(env: &TestEnv, options: &[&str], words: &[&str]) -> Ran {
    let json = env.path("report.json");
    let refit = refit_path();
    let command = [
        &[refit.as_str(), "run", "--json", &json][..],
        options,
        &["--"],
        words,
    ]
    .concat();
    let (output, trace) = env.strace("fsync,io_uring_enter", &command);
    expect_code(&output, 0);
    Ran::new(&output, trace, &json)
}

impl Ran {
    pub fn new(output: &Output, trace: Trace, json: &str) -> Self {
        let [stdout, stderr] = [&output.stdout, &output.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let messages = stderr.lines().filter(|line| line.starts_with("refit: "));
        let json = fs::read_to_string(json).expect("refit wrote its report");
        Self {
            messages: messages.map(|line| format!("{line}\n")).collect(),
            stdout,
            report: serde_json::from_str(&json).expect("the report is JSON"),
            trace,
        }
    }

    pub fn list(&self, pointer: &str) -> &[Value] {
        let list = self.report.pointer(pointer).and_then(Value::as_array);
        list.unwrap_or_else(|| panic!("no {pointer} in {:#}", self.report))
    }

    /// How often a program is named as not reached for this reason, provided that both forms say it.
    pub fn unreached(&self, program: &str, reason: &str) -> u64 {
        let entry = self.list("/coverage/unreached").iter().find(|entry| {
            base(&entry["name"]) == program && entry["reason"].as_str() == Some(reason)
        });
        let count = entry.map_or(0, |entry| number(&entry["count"]));
        let times = if count > 1 {
            format!(" ×{count}")
        } else {
            String::new()
        };
        let named = self
            .messages
            .contains(&format!("{program} ({reason}){times}"));
        assert_eq!(named, count > 0, "{}{:#}", self.messages, self.report);
        count
    }

    /// Whether both forms say that something of this kind in this program is unknown.
    pub fn unknown(&self, program: &str, what: &str) -> bool {
        let in_json = self
            .list("/coverage/unknown")
            .iter()
            .any(|entry| entry["what"] == what && base(&entry["executable"]) == program);
        let in_text = self.messages.contains(&format!("unknown: {program} "));
        assert_eq!(in_json, in_text, "{}{:#}", self.messages, self.report);
        in_json
    }

    pub fn executable(&self, program: &str) -> Option<&Value> {
        let all = self.list("/executables").iter();
        all.into_iter()
            .find(|entry| base(&entry["executable"]) == program)
    }

    /// How many fsyncs of a program refit counted as `seen`, `suppressed`, …; 0 when it knows nothing of it.
    pub fn fsyncs(&self, program: &str, field: &str) -> u64 {
        let calls = self
            .executable(program)
            .and_then(|entry| entry["calls"].get("fsync"));
        calls.map_or(0, |calls| number(&calls[field]))
    }

    /// How many fsyncs the kernel was asked for and answered with 0.
    pub fn real_fsyncs(&self) -> usize {
        let calls = self.trace.calls.iter();
        calls
            .filter(|call| call.name == "fsync" && call.result == "0")
            .count()
    }
}

pub fn base(path: &Value) -> &str {
    let path = path.as_str().unwrap_or_default();
    path.rsplit('/').next().unwrap_or(path)
}

pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} counts nothing"))
}
