//! Metrics in a file, judged by the programs that read them.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::apply::{DROP_IN, tree, words};
use crate::apply_evidence::costs;
use crate::runner::{Outcome, Test};
use crate::sys::send_signal;
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_refused, wait_until,
};
use crate::watch::{Waiting, shell};

pub const TESTS: &[Test] = &[
    test!(promtool_accepts_what_a_watch_writes),
    test!(promtool_accepts_what_status_writes).limit_seconds(120),
    test!(growth_is_told_with_its_interval),
    test!(a_command_keeps_its_end_and_has_metrics),
    test!(a_reader_never_sees_a_part_of_the_file),
    test!(a_hostile_name_is_a_label_and_nothing_else),
    test!(a_file_that_cannot_be_written_is_named_first),
];

/// Runs a command that reads this text, to its end.
fn fed(mut command: Command, text: &str) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it is our child")
}

/// promtool finds neither an error nor anything to improve.
#[track_caller]
pub fn expect_promtool_accepts(env: &TestEnv, text: &str) {
    env.require_command("promtool");
    let mut promtool = env.command("promtool");
    promtool.args(["check", "metrics"]);
    let output = fed(promtool, text);
    expect_code(&output, 0);
    assert!(output.stderr.is_empty(), "{}\n{text}", described(&output));
}

/// Watches a process into a file for as long as this takes; the text of the file at the end.
fn watched(env: &TestEnv, target: &Waiting, seconds: &str) -> (Output, String) {
    let file = env.path("refit.prom");
    let every = ["watch", "--interval", "100ms", "--for", seconds];
    let output = env.refit(&[&every[..], &["--openmetrics", &file, &target.pid()]].concat());
    expect_code(&output, 0);
    (output, fs::read_to_string(&file).expect("it was written"))
}

/// Whether durable calls were seen.
pub fn sees_calls(env: &TestEnv, stderr: &[u8]) -> bool {
    env.as_root() && !String::from_utf8_lossy(stderr).contains("sync calls are unknown")
}

fn promtool_accepts_what_a_watch_writes(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let (output, text) = watched(env, &tree, "2s");
    tree.end();
    expect_promtool_accepts(env, &text);
    let expect = |sample: &str| assert!(text.contains(sample), "{sample} is not in {text}");
    expect("refit_processes{service=\"sh\"} 1\n");
    let calls = "refit_sync_calls_total{service=\"sh\"} 0\n";
    let sees_calls = sees_calls(env, &output.stderr);
    assert_eq!(text.contains(calls), sees_calls, "{text}");
    assert_eq!(text.contains("refit_sync"), sees_calls, "{text}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    // A collector that is another user reads it, as any new file.
    fs::write(env.path("other"), "").expect("the directory is ours");
    let mode = |name: &str| {
        let meta = fs::metadata(env.path(name)).expect("it is there");
        meta.permissions().mode()
    };
    assert_eq!(mode("refit.prom"), mode("other"));
    env.require_real_processor("1 % of it reads no memory");
    expect("refit_unread_processes{service=\"sh\"} 0\n");
    expect("refit_memory_pss_bytes{service=\"sh\"} ");
    Outcome::Pass
}

fn growth_is_told_with_its_interval(env: &TestEnv) -> Outcome {
    env.require_real_processor("1 % of it reads no memory");
    let mut leak = env.command(&env.program("steady_leak"));
    leak.arg("65536");
    let leak = Waiting::start(leak);
    let file = env.path("refit.prom");
    let words = ["watch", "--interval", "100ms", "--openmetrics", &file];
    let mut refit = env.refit_command(&[&words[..], &[&leak.pid()]].concat());
    let refit = refit.stdout(Stdio::null()).stderr(Stdio::null());
    let mut refit = refit.spawn().expect("refit starts");
    let value = |name: &str| -> Option<f64> {
        let text = fs::read_to_string(&file).ok()?;
        let sample =
            format!("\nrefit_memory_growth{name}_bytes_per_hour{{service=\"steady_leak\"}} ");
        let (_, rest) = text.split_once(&sample)?;
        rest.lines().next()?.parse().ok()
    };
    // It needs eight samples.
    wait_until("its growth", || value("").is_some());
    send_signal(refit.id().cast_signed(), libc::SIGTERM);
    refit.wait().expect("it is our child");
    leak.end();
    let [low, rate, high] = ["_low", "", "_high"].map(|name| value(name).expect("all three"));
    assert!(
        0.0 < low && low <= rate && rate <= high,
        "{low} {rate} {high}"
    );
    Outcome::Pass
}

fn a_command_keeps_its_end_and_has_metrics(env: &TestEnv) -> Outcome {
    let file = env.path("refit.prom");
    // It ends when somebody has read a sample of it.
    let script = "until grep -q 'refit_processes{service=\"sh\"}' refit.prom; do :; done; exit 7";
    let words = ["watch", "--interval", "100ms", "--openmetrics", &file, "--"];
    let output = env.refit(&[&words[..], &["sh", "-c", script]].concat());
    expect_code(&output, 7);
    let text = fs::read_to_string(&file).expect("it was written");
    expect_promtool_accepts(env, &text);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("thread"));
    assert!(!text.contains("refit_processes"), "it has ended: {text}");
    Outcome::Pass
}

fn promtool_accepts_what_status_writes(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let file = env.path("status.prom");
    let written = |more: &[&str], code| {
        let output = env.refit(&words("status", &root, more));
        expect_code(&output, code);
        let text = fs::read_to_string(&file).expect("it was written");
        expect_promtool_accepts(env, &text);
        text
    };
    let text = written(&["--openmetrics", &file], 0);
    assert!(text.contains("\nrefit_services 0\n"), "{text}");
    let folder = costs(env);
    let compare = ["compare", &folder, "env.HALF=1", "--yes", "--rounds", "12"];
    let more = ["--remeasure", "--json", "r.json", "--quiet"];
    expect_code(&env.refit(&[&compare[..], &more].concat()), 0);
    let apply = |more: &[&str]| {
        let words = words("apply", &root, &[more, &["--yes"]].concat());
        expect_code(&env.refit(&words), 0);
    };
    apply(&["--from", "r.json"]);
    apply(&["b", "preload=/lib/one.so", "env.KEY=se\"cret"]);
    let text = written(&["--openmetrics", &file, "--exit-code"], 0);
    for sample in [
        "refit_services 2\n",
        "refit_drift{service=\"a.service\",layer=\"file\"} 0\n",
        "refit_drift{service=\"b.service\",layer=\"file\"} 0\n",
        "refit_applied{service=\"b.service\"} 1\n",
        "refit_profile_info{service=\"a.service\",profile=\"env.HALF\",hash=\"",
        "refit_profile_info{service=\"b.service\",profile=\"preload=/lib/one.so env.KEY\",hash=\"",
        // The recipe prints 1 in place of 2.
        "refit_effect_ratio{service=\"a.service\",metric=\"cost\"} 0.5\n",
        "refit_effect_high_ratio{service=\"a.service\",metric=\"cost\"} 0.5\n",
        "refit_last_verify_timestamp_seconds{service=\"a.service\"} ",
    ] {
        assert!(text.contains(sample), "{sample} is not in {text}");
    }
    assert!(!text.contains("cret"), "only root may know it: {text}");
    assert!(!text.contains("layer=\"effective\""), "a tree: {text}");
    // Of one service, that somebody has changed.
    let drop_in = format!("{root}/{DROP_IN}");
    fs::write(&drop_in, "[Service]\n").expect("the tree is ours");
    let text = written(&["a", "--openmetrics", &file, "--exit-code"], 1);
    let drift = "refit_drift{service=\"a.service\",layer=\"file\"} 1\n";
    assert!(text.contains(drift), "{text}");
    assert!(!text.contains("b.service") && !text.contains("refit_services"));
    let text = written(&["a", "b", "--openmetrics", &file], 0);
    assert!(text.contains("service=\"b.service\""), "{text}");
    // The file stays as it is where a service has no change.
    let output = env.refit(&words("status", &root, &["c", "a", "--openmetrics", &file]));
    expect_code(&output, 2);
    assert_eq!(fs::read_to_string(&file).expect("it stays"), text);
    Outcome::Pass
}

fn a_reader_never_sees_a_part_of_the_file(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let file = env.path("refit.prom");
    let words = ["watch", "--interval", "100ms", "--openmetrics", &file];
    let mut refit = env.refit_command(&[&words[..], &[&tree.pid()]].concat());
    let refit = refit.stdout(Stdio::null()).stderr(Stdio::null());
    let mut refit = refit.spawn().expect("refit starts");
    let mut texts = BTreeSet::new();
    wait_until("five texts", || {
        // Many times between two samples.
        for _ in 0..2000 {
            let Ok(text) = fs::read_to_string(&file) else {
                continue;
            };
            let is_whole = text.starts_with("# HELP ") && text.ends_with("\n# EOF\n");
            assert!(is_whole, "{text}");
            texts.insert(text);
        }
        texts.len() >= 5
    });
    send_signal(refit.id().cast_signed(), libc::SIGTERM);
    refit.wait().expect("it is our child");
    tree.end();
    let left = fs::read_dir(env.dir()).expect("it is ours");
    let names: Vec<_> = left
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    assert_eq!(names, ["refit.prom"], "nothing is left beside it");
    Outcome::Pass
}

/// Runs a script that reads this text with the library of Prometheus for Python.
#[track_caller]
pub fn by_python(env: &TestEnv, script: &str, text: &str) -> Output {
    // Debian's, also where another Python comes first on the PATH.
    const PACKAGES: &str = "/usr/lib/python3/dist-packages";
    env.require_command("python3");
    if !Path::new(PACKAGES).join("prometheus_client").is_dir() {
        env.skip("python3-prometheus-client is not installed");
    }
    let mut python = env.command("python3");
    python.args(["-c", script]).env("PYTHONPATH", PACKAGES);
    let output = fed(python, text);
    expect_code(&output, 0);
    output
}

/// The values of `service` in a text, as the library of Prometheus for Python reads it.
fn services(env: &TestEnv, text: &str) -> BTreeSet<String> {
    let script = "import json, sys\n\
        from prometheus_client.parser import text_string_to_metric_families as families\n\
        samples = [s for f in families(sys.stdin.read()) for s in f.samples]\n\
        print(json.dumps([s.labels['service'] for s in samples if 'service' in s.labels]))";
    let output = by_python(env, script, text);
    let read: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let names = read.as_array().expect("a list").iter();
    names
        .map(|name| name.as_str().expect("text").to_owned())
        .collect()
}

fn a_hostile_name_is_a_label_and_nothing_else(env: &TestEnv) -> Outcome {
    // The kernel keeps 15 bytes of it.
    let name = env.path("\"} 1\nb{c=\"\\\u{1b}\r");
    std::os::unix::fs::symlink("/bin/sh", &name).expect("the test's directory is ours");
    let mut command = env.command(&name);
    command.args(["-c", "echo; read x"]);
    let hostile = Waiting::start(command);
    let (_, text) = watched(env, &hostile, "300ms");
    hostile.end();
    expect_promtool_accepts(env, &text);
    let expected = "\"} 1\\nb{c=\"\\\\u{1b}\\r".to_owned();
    assert_eq!(services(env, &text), BTreeSet::from([expected]), "{text}");
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    Outcome::Pass
}

fn a_file_that_cannot_be_written_is_named_first(env: &TestEnv) -> Outcome {
    let file = env.path("none/refit.prom");
    let root = tree(env, "tree");
    for words in [
        &["watch", "--for", "100ms", "--openmetrics", &file][..],
        &["status", "--root", &root, "--openmetrics", &file],
    ] {
        expect_refused(env, words, &["there is no directory", "none"]);
    }
    let words = ["watch", "1", "--per", "echo 1", "--openmetrics", "x"];
    expect_message(&env.refit(&words), 2, "--openmetrics");
    let words = ["status", "--root", &root, "--export", "--openmetrics", "x"];
    expect_message(&env.refit(&words), 2, "--openmetrics");
    Outcome::Pass
}
