//! io_urings that a program fills by itself: swapped where they are submitted by syscall(), and otherwise real
//! and named.

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(what_is_submitted_by_number_is_swapped),
    test!(what_cannot_be_followed_is_real_and_named),
    test!(fio_submits_by_its_own_instructions_and_is_named),
];

/// What refit counted, and whether it named a ring.
struct Ran {
    seen: u64,
    suppressed: u64,
    is_named: bool,
    /// Syncs that reached the filesystem, where the witness is there.
    reached: Option<u64>,
    printed: Vec<u8>,
}

fn run(env: &TestEnv, setting: &str, words: &[&str]) -> Ran {
    let (output, report) = env.refit_json(&[&["run", setting, "--"], words].concat());
    expect_code(&output, 0);
    let syncs = &report["totals"]["io_uring(fsync)"];
    let unknown = report["coverage"]["unknown"].as_array();
    let is_ring = |one: &Value| one["what"] == "io_uring";
    Ran {
        seen: syncs["seen"].as_u64().unwrap_or(0),
        suppressed: syncs["suppressed"].as_u64().unwrap_or(0),
        is_named: unknown.is_some_and(|all| all.iter().any(is_ring)),
        reached: report["witness"]["seen"]["calls"].as_u64(),
        printed: output.stdout,
    }
}

/// The program's own answers without refit; `None` where this kernel has no such ring.
fn bare(env: &TestEnv, words: &[&str]) -> Option<Vec<u8>> {
    let output = env.run(words);
    if output.status.code() == Some(3) {
        println!("not here: {words:?}");
        return None;
    }
    expect_code(&output, 0);
    Some(output.stdout)
}

fn what_is_submitted_by_number_is_swapped(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("own_ring"), env.path("file"));
    let mut tried = 0;
    for (way, syncs) in [
        ("one", 20),
        ("batch", 5),
        ("sqe128", 20),
        ("no_sqarray", 20),
        ("again", 20),
    ] {
        let words = [program.as_str(), &file, way];
        let Some(answers) = bare(env, &words) else {
            continue;
        };
        tried += 1;
        for (setting, suppressed) in [("sync=on", 0), ("sync=off", syncs)] {
            let ran = run(env, setting, &words);
            assert_eq!(ran.printed, answers, "{way} {setting}");
            assert_eq!(
                (ran.seen, ran.suppressed),
                (syncs, suppressed),
                "{way} {setting}"
            );
            assert!(!ran.is_named, "{way} {setting}");
            let reached = ran.reached.unwrap_or(syncs - suppressed);
            assert_eq!(reached, syncs - suppressed, "{way} {setting}");
        }
    }
    if tried == 0 {
        env.skip("no io_uring here");
    }
    // The kernel's own refusal.
    let words = [program.as_str(), &file, "pipe"];
    let ran = run(env, "sync=off", &words);
    assert_eq!(Some(ran.printed), bare(env, &words));
    assert_eq!((ran.seen, ran.suppressed), (1, 0));
    Outcome::Pass
}

fn what_cannot_be_followed_is_real_and_named(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("own_ring"), env.path("file"));
    // Up to the first submission that cannot be followed, it is swapped.
    for (way, suppressed) in [("sqpoll", 0), ("index", 0), ("threads", 1), ("fork", 10)] {
        let words = [program.as_str(), &file, way];
        let Some(answers) = bare(env, &words) else {
            env.skip("no io_uring here");
        };
        let ran = run(env, "sync=off", &words);
        assert_eq!(ran.printed, answers, "{way}");
        assert_eq!(
            (ran.seen, ran.suppressed),
            (suppressed, suppressed),
            "{way}"
        );
        assert!(ran.is_named, "{way}");
        let reached = ran.reached.unwrap_or(20 - suppressed);
        assert_eq!(reached, 20 - suppressed, "{way}");
    }
    Outcome::Pass
}

fn fio_submits_by_its_own_instructions_and_is_named(env: &TestEnv) -> Outcome {
    env.require_command("fio");
    let file = format!("--filename={}", env.path("fio"));
    let job = [
        "fio",
        "--name=j",
        "--rw=write",
        "--bs=4k",
        "--size=400k",
        "--ioengine=io_uring",
        "--fsync=1",
        &file,
    ];
    if !env.run(&job).status.success() {
        env.skip("no io_uring here");
    }
    let ran = run(env, "sync=off", &job);
    assert!(ran.is_named);
    if let Some(reached) = ran.reached {
        assert!(reached >= 90, "fio synced {reached} times");
    }
    Outcome::Pass
}
