//! The kernel as witness: what reached a filesystem, judged by strace where strace can see it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::ran::{Ran, base, number};
use crate::runner::{Outcome, Test};
use crate::strace::Trace;
use crate::test_env::{TestEnv, expect_code, refit_path, wait_until};
use crate::{places, sys, test};

pub const TESTS: &[Test] = &[
    test!(the_witness_counts_what_strace_counts),
    test!(with_sync_off_nothing_reaches_the_filesystem),
    test!(writes_of_o_dsync_and_msync_are_seen),
    test!(an_io_uring_s_sync_is_seen_and_named),
    test!(another_s_syncs_are_not_counted),
    test!(what_the_kernel_had_no_room_for_is_reported),
    test!(without_root_it_is_reported_where_it_matters),
    test!(xfs_and_btrfs_are_watched_too),
    test!(a_comparison_ends_with_the_witness),
];

/// What the witness saw of a run. Skips the test where it cannot be had, or sees nothing of the test's directory.
pub fn seen<'a>(env: &TestEnv, report: &'a Value) -> &'a Value {
    let witness = &report["witness"];
    if let Some(reason) = witness["unavailable"].as_str() {
        env.skip(&format!("no witness: {reason}"));
    }
    let seen = &witness["seen"];
    assert!(seen.is_object(), "{report:#}");
    let kind = env.run(&["stat", "-f", "-c", "%T", "."]).stdout;
    // stat(1) says ext2/ext3 for all three.
    let kind = String::from_utf8_lossy(&kind)
        .trim()
        .replace("ext2/ext3", "ext4");
    let watched = seen["filesystems"].as_array().expect("a list");
    if !watched.contains(&Value::from(kind.as_str())) {
        env.skip(&format!("{kind} has no tracepoints that refit knows"));
    }
    seen
}

fn events(seen: &Value, program: &str, worker: bool) -> u64 {
    let callers = seen["callers"].as_array().expect("a list").iter();
    callers
        .filter(|one| base(&one["executable"]) == program && one["io_uring_worker"] == worker)
        .map(|one| number(&one["calls"]))
        .sum()
}

pub fn run(env: &TestEnv, words: &[&str]) -> Ran {
    let json = env.path("report.json");
    let output = env.refit(&[&["run", "--json", &json], words].concat());
    expect_code(&output, 0);
    Ran::new(&output, Trace::default(), &json)
}

fn witness_lines(messages: &str) -> Vec<&str> {
    let lines = messages.lines();
    lines
        .filter_map(|line| line.strip_prefix("refit: witness: "))
        .collect()
}

fn the_witness_counts_what_strace_counts(env: &TestEnv) -> Outcome {
    env.require_root();
    let json = env.path("report.json");
    let (program, dir) = (env.program("write_fsync"), env.subdir("deep"));
    let script = format!("{program} 40 {dir}/a & {program} 30 {dir}/b & {program} 7 c; wait");
    let refit = refit_path();
    let command = [&refit, "run", "--json", &json, "--", "sh", "-c", &script];
    let (output, trace) = env.strace("fsync", &command);
    expect_code(&output, 0);
    let ran = Ran::new(&output, trace, &json);
    let seen = seen(env, &ran.report);
    assert_eq!(ran.real_fsyncs(), 77, "{:?}", ran.trace);
    assert_eq!(seen["lost"], 0);
    assert_eq!(seen["calls"], 77, "{seen:#}");
    assert_eq!(events(seen, "write_fsync", false), 77);
    assert_eq!(ran.fsyncs("write_fsync", "real"), 77);
    let [line] = witness_lines(&ran.messages)[..] else {
        panic!("{}", ran.messages);
    };
    assert!(line.starts_with("77 durable calls reached "), "{line}");
    assert!(line.ends_with("(write_fsync 77)"), "{line}");
    if seen["directories"] == Value::Array(Vec::new()) {
        return Outcome::Pass; // not ext4
    }
    let directories = seen["directories"].as_array().expect("a list");
    let named: Vec<_> = directories
        .iter()
        .map(|one| {
            (
                one["path"].as_str().expect("they are there"),
                number(&one["calls"]),
            )
        })
        .collect();
    let here = env.dir().display().to_string();
    assert_eq!(named, [(dir.as_str(), 70), (here.as_str(), 7)]);
    Outcome::Pass
}

fn with_sync_off_nothing_reaches_the_filesystem(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("write_fsync");
    let off = run(env, &["sync=off", "--", &program, "25", "file"]);
    let seen_off = seen(env, &off.report);
    assert_eq!(off.fsyncs("write_fsync", "suppressed"), 25);
    assert_eq!(seen_off["calls"], 0, "{seen_off:#}");
    let [line] = witness_lines(&off.messages)[..] else {
        panic!("{}", off.messages);
    };
    assert!(line.starts_with("0 durable calls reached "), "{line}");
    // It is not blind.
    let on = run(env, &["--", &program, "25", "file"]);
    assert_eq!(seen(env, &on.report)["calls"], 25);
    Outcome::Pass
}

fn writes_of_o_dsync_and_msync_are_seen(env: &TestEnv) -> Outcome {
    env.require_root();
    let written = run(
        env,
        &[
            "--",
            "dd",
            "if=/dev/zero",
            "of=file",
            "bs=4k",
            "count=12",
            "oflag=dsync",
            "status=none",
        ],
    );
    let dd = seen(env, &written.report);
    assert_eq!(events(dd, "dd", false), 12, "{dd:#}");
    let escaped = "that refit did not count: dd (writes to O_SYNC files) 12";
    assert!(written.messages.contains(escaped), "{}", written.messages);
    let mapped = run(env, &["--", &env.program("msync_write"), "9", "mapped"]);
    let msync = seen(env, &mapped.report);
    assert_eq!(events(msync, "msync_write", false), 9, "{msync:#}");
    assert!(
        !mapped.messages.contains("did not count"),
        "{}",
        mapped.messages
    );
    Outcome::Pass
}

fn an_io_uring_s_sync_is_seen_and_named(env: &TestEnv) -> Outcome {
    env.require_root();
    let ring = env.program("io_uring_fsync");
    if env.run(&[&ring, "file"]).status.code() == Some(3) {
        env.skip("no io_uring here");
    }
    for settings in [&[][..], &["sync=off"]] {
        let ran = run(env, &[settings, &["--", &ring, "file"]].concat());
        let seen = seen(env, &ran.report);
        assert!(ran.unknown("io_uring_fsync", "io_uring"));
        assert_eq!(seen["calls"], 1, "{seen:#}");
        assert_eq!(events(seen, "io_uring_fsync", true), 1, "{seen:#}");
        let [line] = witness_lines(&ran.messages)[..] else {
            panic!("{}", ran.messages);
        };
        let escaped = "that refit did not count: io_uring_fsync (io_uring worker) 1";
        assert!(line.ends_with(escaped), "{line}");
    }
    Outcome::Pass
}

fn another_s_syncs_are_not_counted(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("write_fsync");
    let mut other = env.command("sh");
    other.args(["-c", &format!("while {program} 50 other; do :; done")]);
    let mut other = other.process_group(0).spawn().expect("sh is there");
    wait_until("the other one's first file", || {
        env.dir().join("other").exists()
    });
    let ran = run(env, &["--", &program, "60", "file"]);
    // It went on all the while.
    assert!(other.try_wait().expect("it is our child").is_none());
    sys::kill_hard(-i32::try_from(other.id()).expect("process ids are ints"));
    other.wait().expect("it is our child");
    assert_eq!(seen(env, &ran.report)["calls"], 60, "{:#}", ran.report);
    Outcome::Pass
}

fn what_the_kernel_had_no_room_for_is_reported(env: &TestEnv) -> Outcome {
    const CALLS: u64 = 10_000;
    env.require_root();
    env.require_command("python3");
    // refit is stopped meanwhile, and reads nothing; its ring of one processor holds some 7,000.
    let script = format!(
        "import os, signal\n\
         os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}})\n\
         os.kill(os.getppid(), signal.SIGSTOP)\n\
         fd = os.open('file', os.O_CREAT | os.O_RDWR)\n\
         for i in range({CALLS}): os.fsync(fd)\n\
         os.kill(os.getppid(), signal.SIGCONT)\n"
    );
    let ran = run(env, &["--", "python3", "-c", &script]);
    let seen = seen(env, &ran.report);
    let (calls, lost) = (number(&seen["calls"]), number(&seen["lost"]));
    // Other programs' calls on that processor take room in the ring too, so no number of ours is certain to fit.
    assert!(calls > 0, "{seen:#}");
    assert!(
        lost > 0 && calls < CALLS && calls + lost >= CALLS,
        "{seen:#}"
    );
    let [line] = witness_lines(&ran.messages)[..] else {
        panic!("{}", ran.messages);
    };
    assert!(line.starts_with("at least "), "{line}");
    Outcome::Pass
}

fn without_root_it_is_reported_where_it_matters(env: &TestEnv) -> Outcome {
    let refit = places::public(env, &refit_path());
    let nobody = |settings: &[&str]| -> Output {
        let mut words = Vec::new();
        if env.as_root() {
            env.require_command("setpriv");
            words.extend([
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ]);
        }
        words.extend([
            "env",
            "-u",
            "XDG_RUNTIME_DIR",
            "-u",
            "XDG_CACHE_HOME",
            "HOME=/nonexistent",
        ]);
        words.extend([&refit, "run"]);
        words.extend(settings);
        words.extend(["--", "true"]);
        env.run(&words)
    };
    let off = nobody(&["sync=off"]);
    expect_code(&off, 0);
    let messages = String::from_utf8_lossy(&off.stderr).into_owned();
    assert_eq!(
        witness_lines(&messages),
        ["not available: only root can ask the kernel"],
        "{messages}"
    );
    let observed = nobody(&[]);
    expect_code(&observed, 0);
    let messages = String::from_utf8_lossy(&observed.stderr).into_owned();
    assert!(!messages.contains("witness"), "{messages}");
    Outcome::Pass
}

fn xfs_and_btrfs_are_watched_too(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("write_fsync");
    let mut tried = 0;
    for (kind, make, file, whole) in [
        ("xfs", "mkfs.xfs -q", "xfs_file_fsync", "xfs_fs_sync_fs"),
        ("btrfs", "mkfs.btrfs -q", "btrfs_sync_file", "btrfs_sync_fs"),
    ] {
        let tool = make.split(' ').next().expect("a word");
        let is_there = ["/sbin", "/usr/sbin"]
            .iter()
            .any(|dir| Path::new(dir).join(tool).exists());
        if !is_there {
            continue;
        }
        // The loop device goes with its mount, and the mount with the last process that sees it.
        let script = format!(
            "PATH=$PATH:/usr/sbin:/sbin\n\
             truncate -s 400M {kind}.img; {make} {kind}.img; mkdir {kind}\n\
             mount -o loop {kind}.img {kind} || {{ echo no mount; exit 0; }}\n\
             exec {} run --json {kind}.json -- sh -c '{program} 15 {kind}/file; sync -f {kind}/file'",
            refit_path()
        );
        let output = places::in_own_mounts(env, &script)
            .output()
            .expect("unshare is there");
        expect_code(&output, 0);
        if output.stdout == b"no mount\n" {
            continue;
        }
        tried += 1;
        let ran = Ran::new(
            &output,
            Trace::default(),
            &env.path(&format!("{kind}.json")),
        );
        let seen = &ran.report["witness"]["seen"];
        let watched = seen["filesystems"].as_array().expect("a list");
        assert!(watched.contains(&Value::from(kind)), "{seen:#}");
        let of = |name: &str| -> u64 {
            let callers = seen["callers"].as_array().expect("a list").iter();
            callers.filter_map(|one| one["events"][name].as_u64()).sum()
        };
        assert_eq!(of(file), 15, "{seen:#}");
        assert_eq!(of(whole), 1, "{seen:#}");
        assert!(!ran.messages.contains("did not count"), "{}", ran.messages);
    }
    if tried == 0 {
        env.skip("no mkfs.xfs, no mkfs.btrfs, or no loop device");
    }
    Outcome::Pass
}

fn a_comparison_ends_with_the_witness(env: &TestEnv) -> Outcome {
    env.require_root();
    let program = env.program("write_fsync");
    let words = [
        "compare", "--quiet", "--rounds", "14", "sync=off", "tz=UTC", "--", &program, "3", "file",
    ];
    let (output, result) = env.refit_json(&words);
    expect_code(&output, 0);
    let of = |variant: usize| &result["variants"][variant];
    seen(env, of(0));
    assert_eq!(seen(env, of(0))["calls"], 3);
    assert_eq!(seen(env, of(1))["calls"], 0);
    assert_eq!(of(2).get("witness"), None, "it is not about syncs");
    let runs = result["runs"].as_array().expect("a list");
    assert!(
        runs.iter().all(|run| run.get("witness").is_none()),
        "no run that is measured"
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = stdout.lines().find(|line| line.starts_with("witness: "));
    let line = line.unwrap_or_else(|| panic!("{stdout}"));
    assert!(
        line.starts_with("witness: at the baseline 3 durable calls reached "),
        "{line}"
    );
    assert!(line.ends_with("; with sync=off 0"), "{line}");
    crate::schema::expect_valid(&result);
    let ran = run(env, &["--", &program, "3", "file"]);
    assert_eq!(seen(env, &ran.report)["calls"], 3);
    crate::schema::expect_valid(&ran.report);
    Outcome::Pass
}
