//! Where calls waited: by the directory of the file.

use serde_json::Value;

use crate::ran::{Ran, number};
use crate::runner::{Outcome, Test};
use crate::strace::Trace;
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(each_wait_is_in_its_file_s_directory),
    test!(a_file_that_moves_is_followed),
];

/// Of one program's calls that took 10 ms each: directories and counts, the longest sum first.
fn waits(env: &TestEnv, program: &str, words: &[&str]) -> Vec<(String, u64)> {
    let (json, path) = (env.path("report.json"), env.program(program));
    let refit = [
        "run",
        "--json",
        &json,
        "--backend",
        "preload",
        "disk=10ms",
        "--",
        &path,
    ];
    let output = env.refit(&[&refit, words].concat());
    expect_code(&output, 0);
    let ran = Ran::new(&output, Trace::default(), &json);
    let executable = ran.executable(program).expect("it was reached");
    let list = executable["directories"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("a path").to_owned();
    for one in list {
        assert!(
            number(&one["waited_ns"]) >= 10_000_000 * number(&one["count"]),
            "{list:#?}"
        );
    }
    let of_each = list.iter();
    of_each
        .map(|one| (text(&one["path"]), number(&one["count"])))
        .collect()
}

/// The directory is looked up anew now and then, and what was found is used meanwhile: no call may be lost by that.
fn each_wait_is_in_its_file_s_directory(env: &TestEnv) -> Outcome {
    let dir = env.subdir("deep");
    let file = format!("{dir}/file");
    assert_eq!(waits(env, "write_fsync", &["25", &file]), [(dir, 25)]);
    Outcome::Pass
}

fn a_file_that_moves_is_followed(env: &TestEnv) -> Outcome {
    let (from, to) = (env.subdir("from"), env.subdir("to"));
    let words = ["30", &format!("{from}/file"), &format!("{to}/file")];
    let found = waits(env, "moved_fsync", &words);
    let count = |dir: &str| {
        let found = found.iter().find(|(path, _)| path == dir);
        found.unwrap_or_else(|| panic!("{dir}: {found:?}")).1
    };
    assert_eq!(count(&from) + count(&to), 60, "{found:?}");
    // For 67 ms, which are at most seven calls.
    assert!((30..=37).contains(&count(&from)), "{found:?}");
    Outcome::Pass
}
