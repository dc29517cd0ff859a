//! `-` as the name of a file: standard output, where nothing else goes then.

use std::fs;

use serde_json::Value;

use crate::compare_files::{forms, make, report};
use crate::compared::{messages, printed};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(every_form_of_a_stored_result_is_what_its_file_would_be),
    test!(what_is_measured_goes_there_once_and_alone),
    test!(two_files_there_are_refused_before_anything_runs),
    test!(a_command_keeps_its_own),
    test!(what_was_kept_is_stored_beside_the_results),
];

fn every_form_of_a_stored_result_is_what_its_file_would_be(env: &TestEnv) -> Outcome {
    make(env, &[]);
    for form in forms(env) {
        let file = env.path("drawn");
        expect_code(&report(env, &["result.json", &form, &file]), 0);
        let output = report(env, &["result.json", &form, "-"]);
        expect_code(&output, 0);
        let drawn = fs::read_to_string(&file).expect("it was drawn");
        assert!(printed(&output) == drawn && drawn.len() > 100, "{form}");
        assert!(!fs::exists(env.path("-")).expect("it can be looked for"));
    }
    expect_code(&env.refit(&["run", "--json", "run.json", "--", "true"]), 0);
    let result = fs::read_to_string(env.path("result.json")).expect("it was written");
    let other: Value = serde_json::from_str(&result).expect("it is JSON");
    let seed = format!("\"seed\":{}", other["seed"]);
    env.file("other.json", &result.replace(&seed, "\"seed\":7"));
    for (words, start) in [
        (
            &["report", "run.json", "--html", "-"][..],
            "<!DOCTYPE html>",
        ),
        (
            &["report", "--history", ".", "--html", "-"],
            "<!DOCTYPE html>",
        ),
        (
            &["pool", "result.json", "other.json", "--md", "-"],
            "**refit pool**",
        ),
        (&["pool", "result.json", "other.json", "--svg", "-"], "<svg"),
    ] {
        let output = env.refit(words);
        expect_code(&output, 0);
        assert!(
            printed(&output).contains(start),
            "{words:?}: {}",
            printed(&output)
        );
    }
    Outcome::Pass
}

fn expect_json(text: &str, kind: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(value["kind"], kind);
}

fn what_is_measured_goes_there_once_and_alone(env: &TestEnv) -> Outcome {
    // After each round pair a file would be written anew.
    let words = [
        "compare", "--json", "-", "--rounds", "12", "env.A=1", "--", "true",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    expect_json(&printed(&output), "compare");
    let own = std::process::id().to_string();
    let output = env.refit(&["watch", &own, "--for", "1s", "--json", "-"]);
    expect_code(&output, 0);
    expect_json(&printed(&output), "watch");
    Outcome::Pass
}

fn two_files_there_are_refused_before_anything_runs(env: &TestEnv) -> Outcome {
    let ran = env.path("ran");
    let own = std::process::id().to_string();
    make(env, &[]);
    for words in [
        &[
            "compare", "--json", "-", "--html", "-", "env.A=1", "--", "touch", &ran,
        ][..],
        &["watch", &own, "--json", "-", "--html", "-"],
        &["pool", "result.json", "--json", "-", "--html", "-"],
        &["report", "result.json", "--json", "-", "--html", "-"],
    ] {
        let output = env.refit(words);
        expect_code(&output, 2);
        assert!(output.stdout.is_empty(), "{words:?}");
        assert!(
            messages(&output).contains("--json - and --html - would both write to stdout"),
            "{words:?}: {}",
            messages(&output)
        );
    }
    assert!(!fs::exists(ran).expect("it can be looked for"));
    Outcome::Pass
}

fn a_command_keeps_its_own(env: &TestEnv) -> Outcome {
    let ran = env.path("ran");
    for words in [
        &["run", "--json", "-", "--", "touch", &ran][..],
        &["run", "--html", "-", "--", "touch", &ran],
        &["run", "--trace-sync", "-", "--", "touch", &ran],
        &["watch", "--svg", "-", "--", "touch", &ran],
    ] {
        let output = env.refit(words);
        expect_code(&output, 125);
        let expected = format!("{} -: stdout is the command's", words[1]);
        assert!(
            messages(&output).contains(&expected),
            "{}",
            messages(&output)
        );
    }
    assert!(!fs::exists(ran).expect("it can be looked for"));
    Outcome::Pass
}

fn what_was_kept_is_stored_beside_the_results(env: &TestEnv) -> Outcome {
    make(env, &[]);
    let log = |words: &[&str]| env.refit(&[&["report", "--history", "."], words].concat());
    let fate = |words: &[&str]| {
        let output = log(words);
        expect_code(&output, 0);
        let text = printed(&output);
        let line = text.lines().find(|line| line.contains("env.SLOW=1"));
        line.expect("it was compared").to_owned()
    };
    assert!(fate(&[]).contains("  open  "));
    assert!(fate(&["--keep", "result.json", "env.SLOW=1"]).contains("  kept  "));
    assert!(fate(&[]).contains("  kept  "));
    assert!(fate(&["--drop", "./result.json", "env.SLOW=1"]).contains("  not kept  "));
    assert!(fate(&[]).contains("  not kept  "));
    let page = printed(&log(&["--html", "-"]));
    assert!(page.contains("data-title=\"kept\">not kept<"), "{page}");
    for (words, message) in [
        (
            ["--keep", "other.json", "env.SLOW=1"],
            "name one of: result.json",
        ),
        (
            ["--keep", "result.json", "sync=off"],
            "name one of: env.OUT=1, ",
        ),
    ] {
        let output = log(&words);
        expect_code(&output, 2);
        assert!(messages(&output).contains(message), "{}", messages(&output));
    }
    Outcome::Pass
}
