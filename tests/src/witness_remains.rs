//! The witness of a killed refit: nothing of it stays open.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, wait_until};
use crate::witness::{run, seen};
use crate::{sys, test};

pub const TESTS: &[Test] = &[test!(a_killed_refit_leaves_nothing_open)];

/// Processes of this test that hold a perf event.
fn watchers(env: &TestEnv) -> Vec<String> {
    let mark = format!("REFIT_TEST_ENV_DIR={}", env.dir().display());
    let is_ours = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|one| one == mark.as_bytes())
    };
    let watches = |process: &Path| {
        let fds = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut links = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        links.any(|link| link.as_os_str() == "anon_inode:[perf_event]")
    };
    let all = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    all.map(|entry| entry.path())
        .filter(|process| is_ours(process) && watches(process))
        .map(|process| process.display().to_string())
        .collect()
}

fn a_killed_refit_leaves_nothing_open(env: &TestEnv) -> Outcome {
    const KILLS: u64 = 60;
    env.require_root();
    let first = run(env, &["--", "true"]);
    seen(env, &first.report);
    let mut caught = 0;
    let mut random = 0x5eed_u64;
    for kill in 0..KILLS {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut refit = env.refit_command(&["run", "--", "cat"]);
        refit
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut refit = refit.spawn().expect("refit is there");
        let watches = || watchers(env).contains(&format!("/proc/{}", refit.id()));
        // Every other refit is killed only after it has begun to watch, however long that takes here.
        if kill % 2 == 0 {
            wait_until("refit to watch", watches);
        }
        let spins = (random >> 33) % 2_000_000;
        for _ in 0..spins {
            std::hint::spin_loop();
        }
        caught += u64::from(watches());
        sys::kill_hard(i32::try_from(refit.id()).expect("process ids are ints"));
        // Its program ends with the pipe.
        drop(refit.stdin.take());
        refit.wait().expect("it is our child");
        // What closes them for it takes its time in the kernel: one at a time.
        wait_until("nobody of ours watches", || watchers(env).is_empty());
    }
    assert!(
        caught >= KILLS / 2,
        "{caught} of {KILLS} watched when they were killed"
    );
    // An orderly end leaves a process for a moment, and that one ends too.
    run(env, &["--", "true"]);
    wait_until("nobody of ours watches", || watchers(env).is_empty());
    Outcome::Pass
}
