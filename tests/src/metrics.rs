//! Metrics for a monitoring system, judged by the programs that read them.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};
use crate::watch::shell;

pub const TESTS: &[Test] = &[test!(promtool_accepts_what_a_watch_writes)];

/// promtool finds neither an error nor anything to improve.
#[track_caller]
fn expect_promtool_accepts(env: &TestEnv, text: &str) {
    env.require_command("promtool");
    let mut promtool = env.command("promtool");
    promtool
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut promtool = promtool.spawn().expect("promtool starts");
    let mut stdin = promtool.stdin.take().expect("it is piped");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    let output = promtool.wait_with_output().expect("it is our child");
    expect_code(&output, 0);
    assert!(output.stderr.is_empty(), "{}\n{text}", described(&output));
}

fn promtool_accepts_what_a_watch_writes(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let file = env.path("refit.prom");
    let words = [
        "watch",
        "--interval",
        "100ms",
        "--for",
        "2s",
        "--openmetrics",
        &file,
        &tree.pid(),
    ];
    let output = env.refit(&words);
    tree.end();
    expect_code(&output, 0);
    let text = fs::read_to_string(&file).expect("it was written");
    expect_promtool_accepts(env, &text);
    for sample in [
        "refit_processes{service=\"sh\"} 1\n",
        "refit_unread_processes{service=\"sh\"} 0\n",
    ] {
        assert!(text.contains(sample), "{text}");
    }
    let known = "refit_sync_calls_total{service=\"sh\"} 0\n";
    if env.as_root() && !String::from_utf8_lossy(&output.stderr).contains("are unknown") {
        assert!(text.contains(known), "{text}");
    } else {
        assert!(!text.contains("refit_sync"), "unknown is not 0: {text}");
    }
    Outcome::Pass
}
