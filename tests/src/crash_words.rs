//! `refit crash`: bad input, and runs that end without a verdict.

use std::fs;
use std::process::Output;

use crate::crash::require_lab;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_refused, refit_path};

pub const TESTS: &[Test] = &[
    test!(wrong_words_are_named),
    test!(what_is_missing_is_named),
    test!(without_a_free_loop_device_nothing_is_left),
    test!(runs_without_a_verdict_say_why),
    test!(an_invalid_state_is_named),
    test!(what_was_abandoned_is_removed),
];

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn refused(env: &TestEnv, words: &[&str], texts: &[&str]) {
    expect_refused(env, &[&["crash"], words].concat(), texts);
}

fn wrong_words_are_named(env: &TestEnv) -> Outcome {
    let good = ["--check", "log:a", "--ack", "fd:1"];
    let cases: [(&[&str], &[&str]); 17] = [
        (&["--", "true"], &["no --check", "--check log:FILE"]),
        (
            &["--check", "log:a", "--", "true"],
            &["no --ack", "--ack fd:1"],
        ),
        (
            &["--check", "log:a", "--ack", "fd:1"],
            &["no command", "--"],
        ),
        (
            &["--check", "log:/a", "--ack", "fd:1", "--", "true"],
            &["log:/a", "$REFIT_MOUNT"],
        ),
        (
            &["--check", "sqlite:t.db", "--ack", "fd:1", "--", "true"],
            &["sqlite:t.db", "SELECT"],
        ),
        (
            &["--check", "log:a", "--ack", "fd:x", "--", "true"],
            &["\"x\"", "fd:1"],
        ),
        (
            &["--check", "log:a", "--ack", "fd:0", "--", "true"],
            &["invalid descriptor 0"],
        ),
        (
            &["--check", "log:a", "--ack", "smtp:here", "--", "true"],
            &["\"here\"", "smtp:127.0.0.1:2525"],
        ),
        (
            &["--check", "log:a", "--ack", "stdout", "--", "true"],
            &["\"stdout\"", "fd:N"],
        ),
        (
            &["--check", "log:a", "--ack-regex", "(", "--", "true"],
            &["\"(\""],
        ),
        (
            &[&good[..], &["--fs", "zfs", "--", "true"]].concat(),
            &["zfs", "ext4, xfs or btrfs"],
        ),
        (
            &[&good[..], &["--size", "1T", "--", "true"]].concat(),
            &["1T", "512M"],
        ),
        (
            &[&good[..], &["--fs", "xfs", "--size", "64M", "--", "true"]].concat(),
            &["xfs"],
        ),
        (
            &[&good[..], &["--tear", "100", "--", "true"]].concat(),
            &["100", "4096"],
        ),
        (
            &[&good[..], &["--cuts", "0", "--", "true"]].concat(),
            &["--cuts 0"],
        ),
        (
            &[&good[..], &["sync=of", "--", "true"]].concat(),
            &["sync=of"],
        ),
        (
            &[&good[..], &["sync=off", "sync=off", "--", "true"]].concat(),
            &["sync=off", "twice"],
        ),
    ];
    for (words, texts) in cases {
        refused(env, words, texts);
    }
    refused(
        env,
        &[&good[..], &["--mount", "/no/such/place", "--", "true"]].concat(),
        &["/no/such/place"],
    );
    refused(
        env,
        &[
            "--check",
            "mail:x",
            "--ack",
            "smtp:127.0.0.1:25",
            "--load",
            "true",
            "--",
            "true",
        ],
        &["--load"],
    );
    Outcome::Pass
}

fn what_is_missing_is_named(env: &TestEnv) -> Outcome {
    let words = ["--check", "log:a", "--ack", "fd:1", "--", "true"];
    if !env.as_root() {
        refused(env, &words, &["cannot be made here", "root"]);
        return Outcome::Pass;
    }
    env.require_namespaces(&["--mount"]);
    let texts = [
        "cannot be made here",
        "FUSE: /dev/fuse",
        "/dev/loop-control",
    ];
    refused_with_devices(env, "true", &words, &texts);
    Outcome::Pass
}

/// As in a container that has the control node but none of the devices.
fn without_a_free_loop_device_nothing_is_left(env: &TestEnv) -> Outcome {
    require_lab(env);
    let records = env.path("records");
    let words = [
        "--quiet", "--check", "log:a", "--ack", "fd:1", "--record", &records, "--", "true",
    ];
    let nodes =
        "mknod /dev/null c 1 3 && mknod /dev/fuse c 10 229 && mknod /dev/loop-control c 10 237";
    let texts = [
        "cannot attach a loop device",
        "losetup -a",
        "/dev/loop",
        "No such file",
    ];
    refused_with_devices(env, nodes, &words, &texts);
    assert!(!fs::exists(&records).expect("a path"), "{records} is left");
    let mounts = fs::read_to_string("/proc/mounts").expect("it is there");
    assert!(!mounts.contains(&records), "{mounts}");
    Outcome::Pass
}

/// As [`refused`], on a machine whose devices are those that `nodes` makes.
fn refused_with_devices(env: &TestEnv, nodes: &str, words: &[&str], texts: &[&str]) {
    let hidden = format!("mount -t tmpfs none /dev && {nodes} && exec \"$0\" crash \"$@\"");
    let shell = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        &hidden,
        &refit_path(),
    ];
    let output = env.run(&[&shell[..], words].concat());
    expect_code(&output, 2);
    for text in texts {
        assert!(messages(&output).contains(text), "{}", described(&output));
    }
}

/// Each fails in another step; nothing may be left of any.
fn runs_without_a_verdict_say_why(env: &TestEnv) -> Outcome {
    require_lab(env);
    let program = env.program("append_log");
    let few = format!("{program} $REFIT_MOUNT/a.log 20");
    let many = format!("{program} $REFIT_MOUNT/a.log 3000");
    let fill = "dd if=/dev/zero of=$REFIT_MOUNT/x bs=1M 2>/dev/null; echo 1";
    let cases: [(&[&str], &str, &[&str]); 12] = [
        (
            &["--check", "echo why >&2; exit 3"],
            &few,
            &["rejects the intact image", "3: why"],
        ),
        (
            &["--check", "echo 77"],
            &few,
            &["20 of 20 are missing", "\"77\""],
        ),
        (
            &["--check", "no-such-checker"],
            &few,
            &["no-such-checker", "127"],
        ),
        (
            &["--check", "log:a.log"],
            "exit 5",
            &["no acknowledgement was received (fd:1)", "ended with 5"],
        ),
        (
            &["--check", "log:a.log", "--for", "1s"],
            "exec sleep 1000",
            &["did not end within 1 s", "--for"],
        ),
        (&["--check", "log:a.log"], fill, &["was full", "--size"]),
        (
            &["--check", "log:a.log", "--record-size", "1M"],
            &many,
            &["--record-size"],
        ),
        (
            &["--check", "log:a.log", "--mount-options", "bogus=1"],
            &few,
            &["bogus=1"],
        ),
        (
            &["--check", "log:a.log", "--prepare", "echo no >&2; exit 4"],
            &few,
            &["--prepare", "no"],
        ),
        (
            &["--check", "log:a.log", "--load", "echo 1; exit 6"],
            "exec sleep 1000",
            &["--load", "6"],
        ),
        (
            &["--check", "log:a.log", "--load", "true"],
            "exit 0",
            &["ended"],
        ),
        (
            &["--check", "sleep 1000", "--check-timeout", "1s"],
            &few,
            &["more than 1 s"],
        ),
    ];
    for (words, command, texts) in cases {
        let all = [
            &["--quiet", "--ack", "fd:1", "--size", "64M", "--cuts", "10"],
            words,
            &["--", "sh", "-c", command],
        ]
        .concat();
        refused(env, &all, texts);
    }
    refused(
        env,
        &[
            "--quiet",
            "--check",
            "log:a",
            "--ack",
            "fd:1",
            "--size",
            "64M",
            "--",
            "/no/such/program",
        ],
        &["/no/such/program"],
    );
    Outcome::Pass
}

fn an_invalid_state_is_named(env: &TestEnv) -> Outcome {
    refused(env, &["open"], &["takes one state"]);
    refused(env, &["open", "somewhere"], &["somewhere", "c1234-torn-17"]);
    refused(
        env,
        &["open", "/no/such/baseline/c1-all-1"],
        &["no record: /no/such"],
    );
    let records = env.subdir("records");
    fs::write(format!("{records}/report.json"), "{\"schema\":1}").expect("writable");
    refused(
        env,
        &["open", &format!("{records}/baseline/c1-all-1")],
        &["is not a report of refit crash"],
    );
    Outcome::Pass
}

fn what_was_abandoned_is_removed(env: &TestEnv) -> Outcome {
    require_lab(env);
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let make = |name: String| {
        let path = std::path::PathBuf::from(format!("/var/tmp/refit-crash-{name}"));
        fs::create_dir(&path).expect("writable");
        path
    };
    let own = |first: char| make(format!("{first}{:011x}", std::process::id()));
    let (abandoned, reported) = (own('a'), own('b'));
    let foreign = make(format!("notes-{}", std::process::id()));
    fs::write(reported.join("report.json"), "{}").expect("writable");
    for path in [&abandoned, &reported, &foreign] {
        let directory = fs::File::open(path).expect("it is there");
        directory.set_modified(old).expect("it is ours");
    }
    refused(
        env,
        &[
            "--quiet", "--check", "log:a", "--ack", "fd:1", "--size", "64M", "--", "false",
        ],
        &["no acknowledgement"],
    );
    assert!(!abandoned.exists());
    assert!(reported.exists(), "what has a verdict is the user's");
    assert!(foreign.exists(), "a name that refit does not make");
    for path in [&reported, &foreign] {
        fs::remove_dir_all(path).expect("it is ours");
    }
    Outcome::Pass
}
