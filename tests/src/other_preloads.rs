//! Programs that have a preload of the user's own: each gets what it gets without refit, and refit takes nothing from it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::ran::Ran;
use crate::runner::{Outcome, Test};
use crate::strace::Trace;
use crate::test;
use crate::test_env::{TestEnv, expect_code, refit_path};
use crate::witness::seen;

pub const TESTS: &[Test] = &[
    test!(its_sync_calls_are_called),
    test!(what_is_suppressed_does_not_reach_it),
    test!(libeatmydata_keeps_its_word),
    test!(a_bent_clock_is_not_refits).limit_seconds(120),
];

/// `hooked` beneath refit with the library: what it printed, and the report.
fn hooked(env: &TestEnv, settings: &[&str]) -> Ran {
    let (hook, program) = (env.program("hook"), env.program("hooked"));
    let (json, file) = (env.path("report.json"), env.path("file"));
    let words = ["run", "--json", &json];
    let args = [&words[..], settings, &["--", &program, &file]].concat();
    let output = env
        .refit_command(&args)
        .env("LD_PRELOAD", &hook)
        .output()
        .expect("refit is there");
    expect_code(&output, 0);
    Ran::new(&output, Trace::default(), &json)
}

/// Its lines without refit.
fn bare(env: &TestEnv) -> String {
    let (hook, program, file) = (env.program("hook"), env.program("hooked"), env.path("file"));
    let output = env
        .command(&program)
        .arg(&file)
        .env("LD_PRELOAD", &hook)
        .output()
        .expect("it is there");
    expect_code(&output, 0);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("fsync: -1 Input/output error"), "{text}");
    text
}

fn its_sync_calls_are_called(env: &TestEnv) -> Outcome {
    let bare = bare(env);
    if env.as_root() {
        let alone = hooked(env, &["--backend", "seccomp", "sync=on"]);
        assert_eq!(alone.stdout, bare, "without refit's library");
    }
    let modes: [&[&str]; 6] = [
        &[],
        &["--backend", "preload", "sync=on"],
        &["--backend", "preload", "disk=1us"],
        &["--backend", "preload", "sync@/no/where/=off"],
        &["sync@/no/where/=off"],
        &["disk=1us"],
    ];
    for settings in modes {
        let ran = hooked(env, settings);
        assert_eq!(ran.stdout, bare, "{settings:?}");
        let others = json!([{
            "library": env.program("hook"),
            "executable": env.program("hooked"),
            "passed_on": ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"],
            "skipped": [],
        }]);
        assert_eq!(ran.report["coverage"]["others"], others, "{settings:?}");
        let line = "refit: hook defines fsync, fdatasync, sync, syncfs, sync_file_range, msync too: calls that refit does \
                    not answer go there";
        assert!(ran.messages.contains(line), "{}", ran.messages);
        assert!(!ran.messages.contains("real:"), "{}", ran.messages);
    }
    // The same where refit loads it.
    let (program, file) = (env.program("hooked"), env.path("file"));
    let preload = format!("preload={}", env.program("hook"));
    let output = env.refit(&["run", "--quiet", &preload, "--", &program, &file]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), bare);
    let plain = Ran::new(
        &env.refit(&["run", "--json", &env.path("plain"), "--", &program, &file]),
        Trace::default(),
        &env.path("plain"),
    );
    assert!(plain.report["coverage"].get("others").is_none());
    Outcome::Pass
}

fn what_is_suppressed_does_not_reach_it(env: &TestEnv) -> Outcome {
    let ran = hooked(env, &["--backend", "preload", "sync=off"]);
    let suppressed = "mapped: 0 \n\
                      fsync: 0 \n\
                      fdatasync: 0 \n\
                      fdatasync of the library's own: 0 \n\
                      syncfs: 0 \n\
                      syncfs of the library's own: 0 \n\
                      sync_file_range: 0 \n\
                      sync_file_range of the library's own: 7 \n";
    assert!(ran.stdout.starts_with(suppressed), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("sync: Success\n"), "{}", ran.stdout);
    assert_eq!(ran.report["totals"]["fsync"]["suppressed"], 1);
    Outcome::Pass
}

/// It answers each sync with 0: observing changes nothing, so nothing reaches the disk.
fn libeatmydata_keeps_its_word(env: &TestEnv) -> Outcome {
    env.require_command("eatmydata");
    let (json, program) = (env.path("report.json"), env.program("write_fsync"));
    let words = [
        "run",
        "--json",
        &json,
        "--",
        "eatmydata",
        &program,
        "100",
        "file",
    ];
    let refit = refit_path();
    let (output, trace) = env.strace("fsync,fdatasync", &[&[&*refit][..], &words].concat());
    expect_code(&output, 0);
    let ran = Ran::new(&output, trace, &json);
    assert_eq!(ran.real_fsyncs(), 0, "{:?}", ran.trace);
    assert_eq!(ran.fsyncs("write_fsync", "seen"), 100);
    assert!(
        ran.messages
            .contains("libeatmydata.so defines fsync, fdatasync,"),
        "{}",
        ran.messages
    );
    if env.as_root() {
        assert_eq!(seen(env, &ran.report)["calls"], 0);
    }
    Outcome::Pass
}

fn a_bent_clock_is_not_refits(env: &TestEnv) -> Outcome {
    let (clock, program) = (env.program("bent_clock"), env.program("write_fsync"));
    let json = env.path("report.json");
    for backend in ["preload", "auto"] {
        let words = ["run", "--json", &json, "--backend", backend, "disk=20ms"];
        let began = Instant::now();
        let output = env
            .refit_command(&[&words[..], &["--", &program, "2", "file"]].concat())
            .env("LD_PRELOAD", &clock)
            .output()
            .expect("refit is there");
        expect_code(&output, 0);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(40), "{took:?}");
        let text = fs::read_to_string(&json).expect("refit wrote it");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let waited = report["totals"]["fsync"]["waited_ns"].as_u64();
        let waited = Duration::from_nanos(waited.expect("a number"));
        let expected = Duration::from_millis(40)..Duration::from_secs(20);
        assert!(
            backend == "auto" || expected.contains(&waited),
            "{waited:?}"
        );
    }
    Outcome::Pass
}
