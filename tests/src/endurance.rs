//! Ten thousand processes, and the end of refit itself in the middle of a run.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::processes::children;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, expect_code, refit_path, wait_for, wait_for_file, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(ten_thousand_forked_processes_are_counted_exactly).limit_seconds(120),
    test!(ten_thousand_execed_processes_are_folded_and_counted_exactly).limit_seconds(180),
    test!(refit_killed_in_the_middle_takes_nothing_with_it),
    test!(a_session_in_the_making_is_no_abandoned_one),
    test!(what_refit_did_not_name_it_does_not_remove),
];

const STORM: u64 = 10_000;

fn count(report: &Value, pointer: &str) -> u64 {
    let value = report.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no {pointer} in {report:#}"))
}

fn all_counted(report: &Value) {
    assert_eq!(count(report, "/totals/fsync/seen"), STORM);
    assert_eq!(count(report, "/totals/fsync/suppressed"), STORM);
    assert_eq!(count(report, "/coverage/processes_seen"), STORM + 1);
    assert_eq!(count(report, "/coverage/processes_reached"), STORM + 1);
    assert_eq!(report["coverage"]["unknown"], Value::Array(Vec::new()));
}

fn ten_thousand_forked_processes_are_counted_exactly(env: &TestEnv) -> Outcome {
    let words = [
        env.program("fork_storm"),
        STORM.to_string(),
        env.path("file"),
    ];
    let words = words.each_ref().map(String::as_str);
    let report = env.report(&[&["run", "--quiet", "sync=off", "--"], &words[..]].concat());
    all_counted(&report);
    Outcome::Pass
}

/// The session of a process that runs beneath refit.
fn session_of(pid: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let session = variables.find_map(|variable| variable.strip_prefix(b"REFIT_SESSION="))?;
    Some(String::from_utf8_lossy(session).into_owned())
}

/// The program of a supervising refit, and its session.
fn program_of(refit: &Child) -> (u32, String) {
    wait_for("the program beneath refit", || {
        let all = children(refit.id()).into_iter();
        all.into_iter()
            .find_map(|pid| Some((pid, session_of(pid)?)))
    })
}

fn ten_thousand_execed_processes_are_folded_and_counted_exactly(env: &TestEnv) -> Outcome {
    let json = env.path("report.json");
    let (storm, times) = (env.program("exec_storm"), STORM.to_string());
    let (once, file) = (env.program("fsync_once"), env.path("file"));
    let options = ["run", "--quiet", "--json", &json, "sync=off", "--"];
    let mut refit = env
        .refit_command(&[&options[..], &[&storm, &times, &once, &file]].concat())
        .spawn()
        .expect("refit was built");
    let (_, session) = program_of(&refit);
    let images = Path::new(&session).join("images");
    let (mut most, mut shrank, mut before) = (0, 0, 0);
    let status = loop {
        let now = fs::read_dir(&images).map_or(0, Iterator::count);
        most = most.max(now);
        shrank += usize::from(now < before);
        before = now;
        if let Some(status) = refit.try_wait().expect("it is our child") {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(status.success());
    let limit = usize::try_from(STORM / 4).expect("it is small");
    assert!(most > 1 && most < limit, "{most} files at once");
    assert!(shrank > 5, "folded {shrank} times");
    assert!(!Path::new(&session).exists(), "{session} is left");
    let text = fs::read_to_string(&json).expect("refit wrote its report");
    all_counted(&serde_json::from_str(&text).expect("the report is JSON"));
    Outcome::Pass
}

fn refit_killed_in_the_middle_takes_nothing_with_it(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let [go, up, done, log] = ["go", "up", "done", "log"].map(|name| env.path(name));
    expect_code(&env.run(&["mkfifo", &go]), 0);
    let (once, file) = (env.program("fsync_once"), env.path("file"));
    let script = format!("{once} {file}; : >{up}; read line <{go}; {once} {file}; : >{done}");
    let json = env.path("report.json");
    let calls = "trace=fsync,sync_file_range";
    let mut refit = env
        .refit_command(&["run", "--quiet", "--json", &json, "sync=off", "--"])
        .args(["strace", "-f", "-qq", "-o", &log, "-e", calls, "--"])
        .args(["sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .expect("refit was built");
    let (program, session) = program_of(&refit);
    wait_for_file(&up);
    let pid = i32::try_from(refit.id()).expect("process ids are ints");
    sys::kill_hard(pid);
    let status = refit.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(libc::SIGKILL));

    // Another run leaves a session alone that is still in use.
    expect_code(
        &env.refit(&["run", "--quiet", "--json", &json, "--", "true"]),
        0,
    );
    assert!(Path::new(&session).join("policy").exists());
    assert!(!Path::new(&done).exists());

    fs::write(&go, "go\n").expect("the program waits for it");
    wait_for_file(&done);
    wait_until("the program to end", || {
        !Path::new(&format!("/proc/{program}")).exists()
    });
    let trace = fs::read_to_string(&log).expect("strace wrote it");
    // One probe on each file, and no sync.
    let probes = trace.matches("sync_file_range(3, 0, 0, 0)").count();
    assert!(probes == 2 && !trace.contains("fsync("), "{trace}");
    // The next run removes it, unless another test's refit looks at it for too long.
    wait_until("the session to be removed", || {
        let next = ["run", "--quiet", "--json", &json, "--", "true"];
        expect_code(&env.refit(&next), 0);
        !Path::new(&session).exists()
    });
    Outcome::Pass
}

/// The session that a process has made the lock file of, but not yet locked.
fn in_the_making(pid: u32) -> Option<PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let mut files = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    let lock = files.find(|file| file.ends_with("lock"))?;
    let session = lock.parent()?;
    (!session.join("images").exists()).then(|| session.to_owned())
}

/// A run begins by removing what dead ones left: one that is only slow is not dead. strace makes it slow, between
/// the making of its session and the lock on it; the more so, until another run begins and ends meanwhile.
fn a_session_in_the_making_is_no_abandoned_one(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let (json, refit) = (env.path("report.json"), refit_path());
    let mut delay_us = 250_000;
    loop {
        let inject = format!("inject=flock:delay_enter={delay_us}");
        let mut slow = env
            .command("strace")
            .args(["-qq", "-o", "/dev/null", "-e", "trace=flock"])
            .args(["-e", &inject, "--"])
            .args([&refit, "run", "--quiet", "--json", &json, "--", "true"])
            .spawn()
            .expect("strace is installed");
        let session = wait_for("a session in the making", || {
            let made = children(slow.id()).into_iter().find_map(in_the_making);
            let has_ended = slow.try_wait().expect("it is our child").is_some();
            (made.is_some() || has_ended).then_some(made)
        });
        let beside = session.is_some_and(|session| {
            expect_code(&env.refit(&["run", "--quiet", "--", "true"]), 0);
            !session.join("images").exists()
        });
        let status = slow.wait().expect("it is our child");
        assert!(status.success(), "{status}");
        if beside {
            return Outcome::Pass;
        }
        delay_us *= 2;
    }
}

/// Wherever sessions and instances lie, and however old it is.
fn what_refit_did_not_name_it_does_not_remove(env: &TestEnv) -> Outcome {
    let old = SystemTime::now() - Duration::from_secs(48 * 3600);
    let id = std::process::id();
    let foreign = [
        "/dev/shm/refit-",
        "/dev/shm/refit-lab-",
        "/var/tmp/refit-lab-",
    ]
    .map(|prefix| PathBuf::from(format!("{prefix}notes-{id}")));
    for directory in &foreign {
        fs::create_dir(directory).expect("writable");
        fs::write(directory.join("kept"), "of value").expect("writable");
        let opened = fs::File::open(directory).expect("it is there");
        opened.set_modified(old).expect("it is ours");
    }
    expect_code(&env.refit(&["run", "--quiet", "--", "true"]), 0);
    let words = [
        "compare", "--quiet", "--rounds", "12", "env.A=1", "--", "true",
    ];
    expect_code(&env.refit(&words), 0);
    for directory in &foreign {
        let kept = fs::read_to_string(directory.join("kept"));
        assert_eq!(kept.expect("nobody removed it"), "of value");
        fs::remove_dir_all(directory).expect("it is ours");
    }
    Outcome::Pass
}
