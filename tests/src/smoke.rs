//! Is there a refit at all, and does it stay out of the program's way?

use crate::lab::{Lab, expect_code};
use crate::runner::{Outcome, Test};
use crate::test;

pub const TESTS: &[Test] = &[
    test!(a_successful_command_exits_0),
    test!(a_failing_commands_code_is_passed_on),
    test!(a_missing_command_gives_127),
];

fn a_successful_command_exits_0(lab: &Lab) -> Outcome {
    let file = lab.path("file");
    let output = lab.refit(&[
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

fn a_failing_commands_code_is_passed_on(lab: &Lab) -> Outcome {
    let missing = format!("if={}", lab.path("missing"));
    expect_code(
        &lab.refit(&["run", "sync=off", "--", "dd", &missing, "of=/dev/null"]),
        1,
    );
    expect_code(
        &lab.refit(&["run", "sync=off", "--", "sh", "-c", "exit 42"]),
        42,
    );
    Outcome::Pass
}

fn a_missing_command_gives_127(lab: &Lab) -> Outcome {
    expect_code(
        &lab.refit(&["run", "sync=off", "--", &lab.path("missing")]),
        127,
    );
    expect_code(
        &lab.refit(&["run", "--", "no-such-command-on-any-path"]),
        127,
    );
    Outcome::Pass
}
