//! refit in a chroot whose root directory is no mount point, and where the kernel permits no namespaces.

use std::fs;

use crate::crash::{bad, mode, require_lab};
use crate::places::in_own_mounts;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, refit_path};

pub const TESTS: &[Test] = &[
    test!(power_is_cut_in_a_chroot_and_no_mount_leaves_it).limit_seconds(180),
    test!(a_recipe_that_mounts_runs_in_a_chroot).limit_seconds(180),
    test!(a_chroot_without_usual_directories_runs_and_compares).limit_seconds(120),
    test!(without_sys_the_witness_counts_and_the_rest_is_unknown),
    test!(without_namespaces_it_is_told_what_needs_them).limit_seconds(180),
];

/// Makes a root directory of this machine's programs, in mounts that are shared as systemd's are, and runs a script in
/// it. Nothing but /proc and /dev is mounted in it: what else there is, `also` makes.
fn in_chroot(env: &TestEnv, also: &str, script: &str) -> std::process::Output {
    env.file("inside.sh", script);
    let script = format!(
        "mount --make-rshared /
        mkdir root; cd root
        mkdir -p proc sys dev tmp var/tmp; chmod 1777 tmp var/tmp
        for dir in usr etc bin sbin lib lib32 lib64 libx32; do
            if [ -L /$dir ]; then cp -P /$dir .
            elif [ -d /$dir ]; then mkdir $dir; mount --rbind /$dir $dir; fi
        done
        mount -t proc proc proc; mount --rbind /dev dev
        cp {} refit; cp ../inside.sh ../program .
        {also}
        mounts() {{ cut -d' ' -f5 /proc/self/mountinfo | sort; }}
        mounts >../before
        chroot . env PATH=$PATH:/usr/sbin:/sbin sh -e inside.sh && code=0 || code=$?
        mounts | diff ../before - >&2
        exit $code",
        refit_path()
    );
    let mut command = in_own_mounts(env, &script);
    command.output().expect("unshare is there")
}

/// Lets a script in a chroot find the program under this name.
fn program(env: &TestEnv, name: &str) {
    fs::copy(env.program(name), env.path("program")).expect("both are ours");
}

fn power_is_cut_in_a_chroot_and_no_mount_leaves_it(env: &TestEnv) -> Outcome {
    require_lab(env);
    program(env, "append_log");
    let crash = "cd /tmp; /refit crash --quiet --json /crash.json --check log:a.log --ack fd:1 --size 64M --cuts 20 \
        --for 1h sync=off -- sh -c '/program $REFIT_MOUNT/a.log 600 300'";
    let output = in_chroot(env, "mount --rbind /sys sys", crash);
    expect_code(&output, 0);
    let text = fs::read_to_string(env.path("root/crash.json")).expect("refit wrote it");
    let report = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(bad(mode(&report, "baseline")), 0, "{report:#}");
    Outcome::Pass
}

fn a_recipe_that_mounts_runs_in_a_chroot(env: &TestEnv) -> Outcome {
    for command in ["gcc", "rsyslogd"] {
        env.require_command(command);
    }
    program(env, "static_true");
    let also = "mkdir -p var/lib run; mount -t tmpfs tmpfs run";
    let output = in_chroot(env, also, "/refit recipes check rsyslog-lease");
    expect_code(&output, 0);
    let printed = described(&output);
    assert!(
        printed.contains("ok      rsyslog-lease: conf.sync=on:"),
        "{printed}"
    );
    Outcome::Pass
}

/// As mmdebstrap makes one, with nothing mounted but /proc and a /dev of three nodes.
fn a_chroot_without_usual_directories_runs_and_compares(env: &TestEnv) -> Outcome {
    program(env, "fsync_once");
    let also = "umount -l dev; mount -t tmpfs tmpfs dev
        for node in null zero urandom; do : >dev/$node; mount --bind /dev/$node dev/$node; done";
    let script = "cd /tmp
        /refit run sync=off -- /program file 2>&1
        /refit compare --rounds 5 sync=off -- /program file 2>&1
        /refit doctor 2>&1";
    let output = in_chroot(env, also, script);
    expect_code(&output, 0);
    let printed = described(&output);
    for text in [
        "suppressed 1 of 1 sync call",
        "0 (1 suppressed)",
        "session page   /tmp/refit (not tmpfs",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    Outcome::Pass
}

fn without_sys_the_witness_counts_and_the_rest_is_unknown(env: &TestEnv) -> Outcome {
    program(env, "fsync_once");
    let script = "cd /tmp
        /refit run --json /run.json sync=off -- /program file
        /refit doctor
        /refit run thp=never -- true
        /refit run thp=madvise -- true || :";
    let report = |also| {
        let output = in_chroot(env, also, script);
        let told = described(&output);
        expect_code(&output, 0);
        let text = fs::read_to_string(env.path("root/run.json")).expect("refit wrote it");
        let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        (report, told)
    };
    let (seen, _) = report("mount --rbind /sys sys");
    if !seen["witness"]["seen"].is_object() {
        env.skip(&format!("no witness here: {}", seen["witness"]));
    }
    fs::rename(env.path("root"), env.path("with-sys")).expect("it is ours");
    // As a sandbox has it: something is there, and not what the kernel says.
    let (seen, told) = report("mkdir -p sys/fs/cgroup");
    assert!(seen["witness"]["seen"].is_object(), "{told}");
    for text in [
        "system         unknown: /sys",
        "thp=madvise: the system's mode",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    Outcome::Pass
}

fn without_namespaces_it_is_told_what_needs_them(env: &TestEnv) -> Outcome {
    require_lab(env);
    let without = env.program("without_namespaces");
    let refit = refit_path();
    let records = env.path("records");
    let run = |words: &[&str]| env.run(&[&[&*without, &*refit], words].concat());
    let output = run(&[
        "crash", "--record", &records, "--check", "log:a", "--ack", "fd:1", "--", "true",
    ]);
    let why = "no process namespace can be made: Operation not permitted";
    expect_message(&output, 2, why);
    assert!(!fs::exists(&records).expect("a path"), "{records} is left");

    let output = run(&["demo", "--budget", "4s"]);
    expect_code(&output, 0);
    let words = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains(&format!("No power was cut here to show it: {why}"))
    );

    for command in ["gcc", "rsyslogd"] {
        env.require_command(command);
    }
    let output = run(&["compare", "rsyslog-lease"]);
    expect_message(
        &output,
        2,
        "the recipe rsyslog-lease mounts, in a mount namespace of its own",
    );
    Outcome::Pass
}
