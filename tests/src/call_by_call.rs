//! One run of which each sync call is told twice: by `--trace-sync`, and by strace around it.

use std::fs;

use serde_json::Value;

use crate::strace::Trace;
use crate::test_env::{TestEnv, expect_code, refit_path};

/// What it did, and what both reported of it.
pub struct CallByCall {
    /// The program's own words.
    pub stdout: String,
    /// refit's.
    pub messages: String,
    pub report: Value,
    /// The lines of `--trace-sync`, in order.
    pub calls: Vec<Value>,
    pub trace: Trace,
}

/// Runs a command beneath refit and strace, which follows the calls of these names; it has to end with 0.
pub fn run(env: &TestEnv, followed: &str, settings: &[&str], command: &[&str]) -> CallByCall {
    let (file, json) = (env.path("trace.jsonl"), env.path("report.json"));
    let refit = refit_path();
    let own = [
        &refit,
        "run",
        "--json",
        &json,
        "--trace-sync",
        &file,
        "--backend",
        "preload",
    ];
    let words = [&own[..], settings, &["--"], command].concat();
    let (output, trace) = env.strace(followed, &words);
    expect_code(&output, 0);
    let text = |path: &str| fs::read_to_string(path).expect("refit wrote it");
    CallByCall {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        messages: String::from_utf8_lossy(&output.stderr).into_owned(),
        report: serde_json::from_str(&text(&json)).expect("the report is JSON"),
        calls: text(&file)
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect(),
        trace,
    }
}
