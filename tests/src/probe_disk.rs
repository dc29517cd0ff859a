//! `refit doctor --probe-disk`: a real disk sampled into a profile, and what `disk=FILE` makes of it and of files that
//! are none.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(each_flush_is_sampled_and_nothing_is_left),
    test!(an_interrupted_probe_leaves_nothing),
    test!(memory_is_no_disk),
    test!(a_probe_that_cannot_be_made_says_why),
    test!(a_profile_is_played_back),
    test!(a_file_that_is_no_profile_starts_nothing),
];

/// Milliseconds in nanoseconds.
const MS: u64 = 1_000_000;

/// What stands in a row of the page.
fn row<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let of_row = |line: &'a str| line.trim_start().strip_prefix(name)?.strip_prefix(' ');
    page.lines().find_map(of_row).map(str::trim)
}

fn files(directory: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries
        .map(|entry| entry.expect("it can be listed").path())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &str) -> Value {
    let text = fs::read_to_string(path).expect("refit wrote it");
    serde_json::from_str(&text).expect("it is JSON")
}

fn each_flush_is_sampled_and_nothing_is_left(env: &TestEnv) -> Outcome {
    let (disk, json) = (env.subdir("disk"), env.path("disk.json"));
    let refit = refit_path();
    let words = [
        refit.as_str(),
        "doctor",
        "--probe-disk",
        &disk,
        "--json",
        &json,
    ];
    let (output, trace) = env.strace("fsync,fdatasync", &words);
    expect_code(&output, 0);
    assert_eq!(files(&disk), <[&Path; 0]>::default());

    let profile = read(&json);
    let samples: Vec<u64> = profile["samples_ns"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|ns| ns.as_u64().expect("a whole number"))
        .collect();
    assert!(samples.len() >= 50, "{} samples", samples.len());
    // And one that is not sampled, for the file itself.
    assert_eq!(trace.count("fsync"), samples.len() + 1);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
    assert_eq!(profile["kernel"], release.trim());

    let page = text(&output.stdout);
    let mut sorted = samples;
    sorted.sort_unstable();
    let median_us = sorted[sorted.len().div_ceil(2) - 1] as f64 / 1e3;
    let p50 = row(&page, "p50").expect("a row");
    let mut words = p50.split_whitespace();
    let number: f64 = words.next().expect("a number").parse().expect("a number");
    let unit = match words.next() {
        Some("µs") => 1.0,
        Some("ms") => 1e3,
        unit => panic!("{unit:?} in {page}"),
    };
    assert!(
        (number * unit / median_us - 1.0).abs() < 0.006,
        "{median_us} and {page}"
    );

    assert_eq!(row(&page, "profile"), Some(format!("disk={json}").as_str()));
    let setting = row(&page, "setting").expect("a disk has one");
    assert!(setting.starts_with("disk=p50="), "{page}");
    for setting in [setting, &format!("disk={json}")] {
        expect_code(&env.refit(&["run", setting, "--", "true"]), 0);
    }
    Outcome::Pass
}

fn an_interrupted_probe_leaves_nothing(env: &TestEnv) -> Outcome {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let (disk, json) = (env.path("disk"), env.path("disk.json"));
        fs::create_dir_all(&disk).expect("the test's directory is ours");
        let mut command = env.refit_command(&["doctor", "--probe-disk", &disk, "--json", &json]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("refit starts");
        wait_until("the file that is flushed", || {
            files(&disk)
                .iter()
                .any(|file| fs::metadata(file).is_ok_and(|meta| meta.len() > 1000))
        });
        sys::send_signal(i32::try_from(child.id()).expect("a pid"), signal);
        let output = child.wait_with_output().expect("it is our child");
        expect_code(&output, 2);
        assert_eq!(output.status.signal(), None);
        let messages = text(&output.stderr);
        assert!(messages.contains("interrupted after "), "{messages}");
        assert_eq!(
            files(&disk),
            <[&Path; 0]>::default(),
            "after signal {signal}"
        );
        assert!(!Path::new(&json).exists());
    }
    Outcome::Pass
}

fn memory_is_no_disk(env: &TestEnv) -> Outcome {
    let place = Path::new("/dev/shm");
    if !sys::is_memory_filesystem(place).unwrap_or(false) {
        env.skip("/dev/shm is not tmpfs");
    }
    let memory = tempfile::tempdir_in(place).expect("anyone may write there");
    let directory = memory.path().to_str().expect("it is text");
    let output = env.refit(&["doctor", "--probe-disk", directory]);
    expect_code(&output, 1);
    let page = text(&output.stdout);
    assert!(
        row(&page, "no disk").is_some_and(|why| why.contains("in memory")),
        "{page}"
    );
    assert_eq!(row(&page, "setting"), None, "{page}");
    Outcome::Pass
}

fn a_probe_that_cannot_be_made_says_why(env: &TestEnv) -> Outcome {
    let (file, gone) = (env.file("file", ""), env.path("gone"));
    let json = format!("{gone}/disk.json");
    let cases: [(&[&str], &str); 6] = [
        (&["--probe-disk", &gone], &gone),
        (&["--probe-disk", &file], "Not a directory"),
        (&["--probe-disk", "/proc"], "cannot make a file in /proc"),
        (&["--probe-disk", ".", "--json", &json], &gone),
        (&["--json", &file], "--probe-disk"),
        (&["--probe-disk", ".", "ls"], "cannot be used with"),
    ];
    for (words, part) in cases {
        let output = env.refit(&[&["doctor"], words].concat());
        expect_code(&output, 2);
        assert!(
            text(&output.stderr).contains(part),
            "{}",
            described(&output)
        );
        assert!(output.stdout.is_empty(), "{}", described(&output));
    }
    let ls = env.refit(&["doctor", "--json", &file, "ls"]);
    expect_code(&ls, 2);
    Outcome::Pass
}

/// `write_fsync` on the disk of this profile: how long its twenty calls waited, by refit's own counters.
fn waited_ns(env: &TestEnv, samples_ns: &[u64]) -> u64 {
    let profile = json!({"schema": 1, "kind": "disk-profile", "samples_ns": samples_ns});
    let profile = env.file("profile.json", &profile.to_string());
    let (program, file) = (env.program("write_fsync"), env.path("f"));
    let disk = format!("disk={profile}");
    let report = env.report(&["run", &disk, "--", &program, "20", &file]);
    let calls = &report["totals"]["fsync"];
    assert_eq!(calls["real"], 20, "{report}");
    calls["waited_ns"].as_u64().expect("a number")
}

fn a_profile_is_played_back(env: &TestEnv) -> Outcome {
    let always = waited_ns(env, &[4 * MS]);
    assert!(always >= 20 * 4 * MS, "{always} ns");
    // Half of the draws are of 20 ms: that no more than one is comes once in 50,000 seeds.
    let sometimes = waited_ns(env, &[MS, 20 * MS, MS, 20 * MS]);
    assert!(sometimes >= 2 * 20 * MS, "{sometimes} ns");
    Outcome::Pass
}

fn refused(env: &TestEnv, disk: &str) -> Output {
    let started = env.path("started");
    let output = env.refit(&["run", disk, "--", "touch", &started]);
    expect_code(&output, 125);
    assert!(!Path::new(&started).exists(), "{disk}");
    let messages = text(&output.stderr);
    assert!(
        messages.contains("refit doctor --probe-disk DIR --json FILE"),
        "{messages}"
    );
    output
}

fn a_file_that_is_no_profile_starts_nothing(env: &TestEnv) -> Outcome {
    let result = env.path("result.json");
    expect_code(&env.refit(&["run", "--json", &result, "--", "true"]), 0);
    let pipe = env.path("pipe");
    let made = Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("coreutils are installed");
    assert!(made.success());
    let deep = format!("{{\"samples_ns\":{}", "[".repeat(200_000));
    for (path, part) in [
        (env.path("gone"), "No such file"),
        (env.subdir("directory"), "not a regular file"),
        (pipe, "not a regular file"),
        (env.file("empty", ""), "cut short"),
        (env.file("deep", &deep), "is damaged"),
        (
            env.file(
                "short",
                r#"{"schema":1,"kind":"disk-profile","samples_ns":[1,"#,
            ),
            "cut short",
        ),
        (
            env.file(
                "none",
                r#"{"schema":1,"kind":"disk-profile","samples_ns":[]}"#,
            ),
            "no samples",
        ),
        (
            env.file(
                "less",
                r#"{"schema":1,"kind":"disk-profile","samples_ns":[1,-2]}"#,
            ),
            "`-2`",
        ),
        (
            env.file(
                "next",
                r#"{"schema":2,"kind":"disk-profile","samples_ns":[1]}"#,
            ),
            "schema 2",
        ),
        (result, "`run`, not `disk-profile`"),
    ] {
        let output = refused(env, &format!("disk={path}"));
        let messages = text(&output.stderr);
        assert!(
            messages.contains(&path) && messages.contains(part),
            "{part}: {messages}"
        );
    }
    Outcome::Pass
}
