//! Is there a refit at all, and does it stay out of the program's way?

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_successful_command_exits_0),
    test!(a_failing_commands_code_is_passed_on),
    test!(a_missing_command_gives_127),
];

fn a_successful_command_exits_0(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    let output = env.refit(&[
        "run",
        "sync=off",
        "--",
        "dd",
        "if=/dev/zero",
        &format!("of={file}"),
        "bs=4k",
        "count=1",
        "conv=fsync",
    ]);
    expect_code(&output, 0);
    let length = std::fs::metadata(&file).expect("dd made its file").len();
    assert_eq!(length, 4096);
    Outcome::Pass
}

fn a_failing_commands_code_is_passed_on(env: &TestEnv) -> Outcome {
    let missing = format!("if={}", env.path("missing"));
    expect_code(
        &env.refit(&["run", "sync=off", "--", "dd", &missing, "of=/dev/null"]),
        1,
    );
    expect_code(
        &env.refit(&["run", "sync=off", "--", "sh", "-c", "exit 42"]),
        42,
    );
    Outcome::Pass
}

fn a_missing_command_gives_127(env: &TestEnv) -> Outcome {
    expect_code(
        &env.refit(&["run", "sync=off", "--", &env.path("missing")]),
        127,
    );
    expect_code(
        &env.refit(&["run", "--", "no-such-command-on-any-path"]),
        127,
    );
    Outcome::Pass
}
