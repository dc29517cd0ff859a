//! Programs in bubblewrap, runc and systemd-nspawn beneath refit, refit inside of bubblewrap, and refit where usual
//! places are missing.

use std::fs;

use crate::namespaces::{hold, sync_once};
use crate::runner::{Outcome, Test};
use crate::seccomp::run;
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(bubblewrap_hides_no_sync),
    test!(runc_hides_no_sync),
    test!(nspawn_hides_no_sync),
    test!(refit_works_inside_of_bubblewrap),
    test!(without_its_usual_places_it_works_or_names_one),
];

fn bubblewrap_hides_no_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("bwrap");
    let (sync, dir) = (sync_once(env), env.path(""));
    let scripts = [
        format!("bwrap --dev-bind / / {sync}"),
        format!("bwrap --dev-bind / / --unshare-all sh -c '{sync}; :'"),
        format!(
            "bwrap --ro-bind / / --bind {dir} {dir} --tmpfs /run --tmpfs /dev/shm --proc /proc {sync}"
        ),
        format!(
            "bwrap --ro-bind / / --bind {dir} {dir} --tmpfs /var/lib --clearenv sh -c '{sync}; :'"
        ),
    ];
    hold(env, &scripts);
    Outcome::Pass
}

/// A container of the dynamic program alone, whose root is on the disk.
fn runc_hides_no_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("runc");
    let bundle = env.subdir("bundle");
    places::chroot(env, "bundle/rootfs", &[&env.program("fsync_once")]);
    expect_code(&env.run(&["runc", "spec", "--bundle", &bundle]), 0);
    let file = format!("{bundle}/config.json");
    let text = fs::read_to_string(&file).expect("runc wrote it");
    let mut config: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    config["process"]["terminal"] = false.into();
    config["process"]["args"] = serde_json::json!(["/fsync_once", "/file"]);
    config["root"]["readonly"] = false.into();
    fs::write(&file, config.to_string()).expect("it is ours");
    let state = env.path("state");
    hold(
        env,
        &[format!(
            "runc --root {state} run --bundle {bundle} refit-test-{}",
            std::process::id()
        )],
    );
    Outcome::Pass
}

fn nspawn_hides_no_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("systemd-nspawn");
    let root = places::chroot(env, "root", &[&env.program("fsync_once")]);
    fs::create_dir_all(format!("{root}/usr")).expect("it is ours");
    let script = format!(
        "systemd-nspawn --quiet --register=no --keep-unit --as-pid2 -D {root} /fsync_once /file"
    );
    let words = ["sh", "-ec", &script];
    if !env.run(&words).status.success() {
        env.skip("systemd-nspawn cannot run here");
    }
    assert_eq!(run(env, &["tz=UTC"], &words).durable, 1);
    // It installs a filter of its own, after which the preload makes no call: that is named.
    let off = run(env, &["sync=off"], &words);
    let named = off
        .messages
        .contains("not reached, run as without refit: fsync_once");
    assert!(off.durable == 0 || named, "{}", off.messages);
    let off = run(env, &["--backend", "seccomp", "sync=off"], &words);
    assert_eq!(off.durable, 0, "{}", off.messages);
    Outcome::Pass
}

/// Without privileges, and with a filter of the sandbox's user's own choice: none.
fn refit_works_inside_of_bubblewrap(env: &TestEnv) -> Outcome {
    env.require_command("bwrap");
    let (sync, dir, json) = (sync_once(env), env.path(""), env.path("inside.json"));
    let refit = refit_path();
    let bare = env.run(&["bwrap", "--ro-bind", "/", "/", "true"]);
    if !bare.status.success() {
        env.skip(&format!("no bubblewrap here: {}", described(&bare)));
    }
    // /run as on most machines, and as a tmpfs that cannot be written to.
    let read_only = "--tmpfs /run --perms 0700 --dir /run/user --remount-ro /run --setenv XDG_RUNTIME_DIR /run/user";
    for run in ["", read_only] {
        let script = format!(
            "exec bwrap --ro-bind / / --bind {dir} {dir} --dev /dev --proc /proc --tmpfs /dev/shm --tmpfs /var/tmp {run} \
            --bind {dir} {dir} --ro-bind {refit} {refit} --unshare-pid --setenv HOME {dir} {refit} run --quiet --json {json} sync=off -- {sync}"
        );
        expect_code(&env.run(&["sh", "-c", &script]), 0);
        let report = fs::read_to_string(&json).expect("refit wrote it");
        let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
        assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    }
    Outcome::Pass
}

/// Each hidden by an empty file system that nobody can write to.
fn without_its_usual_places_it_works_or_names_one(env: &TestEnv) -> Outcome {
    let sync = sync_once(env);
    let hidden = [
        "/proc",
        "/sys",
        "/run",
        "/dev/shm",
        "/var/lib",
        "/run /dev/shm",
        "/var/lib /var/tmp",
        "/proc /sys",
    ];
    for places in hidden {
        for settings in [
            "sync=off",
            "--backend seccomp sync=off",
            "sync@exe:fsync_once=off",
        ] {
            let sync = sync.replace(&env.path(""), "/mnt/");
            let script = format!(
                "cp {} /mnt/refit 2>/dev/null || :
                for place in {places}; do mount -t tmpfs -o ro tmpfs $place; done
                timeout 20 /mnt/refit run {settings} -- {sync}",
                refit_path()
            );
            let output = places::in_own_mounts(env, &script)
                .output()
                .expect("unshare is there");
            let errors = String::from_utf8_lossy(&output.stderr);
            let about = format!("{settings} without {places}: {}", described(&output));
            match output.status.code() {
                Some(0) => assert!(errors.contains("sync"), "{about}"),
                Some(125) => assert!(
                    errors.starts_with("refit: ")
                        && places.split(' ').any(|place| errors.contains(place)),
                    "{about}"
                ),
                _ => panic!("{about}"),
            }
        }
    }
    Outcome::Pass
}
