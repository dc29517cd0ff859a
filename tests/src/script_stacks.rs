//! Functions and lines of a program that an interpreter runs, in the findings of `--durability` and the paths of `--heap`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::durability::{NAME, REPLACED, findings, judged};
use crate::random::seed;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, finish};

pub const TESTS: &[Test] = &[
    test!(findings_have_the_functions_that_python_has),
    test!(a_leak_of_python_has_its_line),
    test!(a_python_that_is_not_known_is_named),
    test!(what_only_calls_itself_python_breaks_nothing),
];

const NESTED_CALLS: &str = include_str!("script_stacks/nested_calls.py");

/// Stacks of a run, of which each way to call leaf's caller has one that is told.
const STACKS: &str = "150";
/// Runs.
const RUNS: u64 = 5;

/// A name or a path with more characters is cut: its end is kept.
const MOST_CHARACTERS: usize = 400;

/// With less text than this all functions have room, in bytes.
const SURE_ROOM: usize = 1900;

/// Function, file and line.
type Call = (String, String, u64);

/// What an interpreter runs, the innermost first.
fn script(frames: &Value) -> Vec<Call> {
    let frames = frames.as_array().expect("a list").iter().rev();
    let frames = frames.filter(|frame| frame["is_script"] == true);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    frames
        .map(|frame| {
            let line = frame["line"].as_u64().unwrap_or(0);
            (text(&frame["function"]), text(&frame["file"]), line)
        })
        .collect()
}

/// CPython itself tells what each stack is.
fn findings_have_the_functions_that_python_has(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let path = env.file("nested_calls.py", NESTED_CALLS);
    let first = seed();
    let (mut compared, mut whole) = (0, 0);
    for seed in first..first + RUNS {
        let name = format!("nested-{seed}");
        let words = ["python3", &path, &seed.to_string(), STACKS];
        let (output, report) = judged(env, &name, &[], &words);
        expect_code(&output, 0);
        let told = fs::read_to_string(env.path(&format!("{name}/stacks.json")));
        let told: Stacks = serde_json::from_str(&told.expect("it is written")).expect("JSON");
        for finding in findings(&report) {
            let path = finding["path"].as_str().expect("a path");
            let Some(stack) = told.get(path).filter(|_| finding["rule"] == NAME) else {
                continue;
            };
            let found = script(&finding["at"]);
            expect_same(&found, stack, &format!("seed {seed}: {path}"));
            compared += 1;
            whole += usize::from(found.len() == stack.len());
        }
    }
    println!("counted: {compared} stacks, {whole} of them whole; from seed {first} on");
    assert!(compared > 50 && whole > 20);
    Outcome::Pass
}

/// By the path that the call is about.
type Stacks = BTreeMap<String, Vec<Call>>;

#[track_caller]
fn expect_same(found: &[Call], stack: &[Call], of: &str) {
    let kept = |text: &String| {
        let all: Vec<char> = text.chars().collect();
        String::from_iter(&all[all.len().saturating_sub(MOST_CHARACTERS)..])
    };
    let stack = stack.iter();
    let stack: Vec<Call> = stack
        .map(|(function, file, line)| (kept(function), kept(file), *line))
        .collect();
    assert!(!found.is_empty(), "{of}: {stack:?}");
    assert_eq!(found, &stack[..found.len()], "{of}");
    let bytes = stack
        .iter()
        .map(|(function, file, _)| function.len() + file.len() + 8);
    let has_room = bytes.sum::<usize>() < SURE_ROOM;
    assert!(
        found.len() == stack.len() || !has_room,
        "{of}: {found:?} of {stack:?}"
    );
}

fn a_leak_of_python_has_its_line(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let program = "import os\n\
                   class Cache:\n\
                   \x20   kept = []\n\
                   \x20   def grow(self):\n\
                   \x20       self.kept.append(bytearray(4000))\n\
                   def serve():\n\
                   \x20   for _ in range(20000):\n\
                   \x20       Cache().grow()\n\
                   serve()\n\
                   os._exit(0)\n";
    let path = env.file("leak.py", program);
    let json = env.path("leak.json");
    let output = env.refit(&["run", "--heap", "--json", &json, "--", "python3", &path]);
    expect_code(&output, 0);
    let report = fs::read_to_string(&json).expect("it is written");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let first = &report["heap_paths"][0]["paths"][0];
    let names = [("Cache.grow", 5), ("serve", 8), ("<module>", 9)];
    let expected = names.map(|(function, line)| (function.to_owned(), path.clone(), line));
    assert_eq!(script(&first["frames"]), expected, "{first:#}");
    let samples = first["samples"].as_u64().expect("a number");
    assert!(samples > 50, "{samples}");
    let told = described(&output);
    let chain = "< Cache.grow (leak.py:5) < serve (leak.py:8) < <module> (leak.py:9)";
    assert!(told.contains(chain), "{told}");
    Outcome::Pass
}

/// The functions of the program that has an interpreter's names.
fn of_false_python(env: &TestEnv, minor: &str, thread: &str) -> Vec<Call> {
    let program = env.program("false_python");
    let name = format!("{minor}-{thread}");
    let (output, report) = judged(env, &name, &[], &[&program, minor, thread]);
    expect_code(&output, 0);
    let named = findings(&report).iter();
    let named: Vec<&Value> = named.filter(|one| one["rule"] == REPLACED).collect();
    assert!(!named.is_empty(), "{report:#}");
    script(&named[0]["at"])
}

fn a_python_that_is_not_known_is_named(env: &TestEnv) -> Outcome {
    for minor in ["14", "15", "13"] {
        // Those of 3.13 and 3.14 publish nothing that can be right.
        let text = format!("[Python 3.{minor}: functions and lines are not known]");
        let expected = [(text, String::new(), 0)];
        assert_eq!(of_false_python(env, minor, "loop"), expected);
    }
    Outcome::Pass
}

fn what_only_calls_itself_python_breaks_nothing(env: &TestEnv) -> Outcome {
    for minor in ["11", "12"] {
        for thread in ["nowhere", "text", "loop"] {
            assert_eq!(of_false_python(env, minor, thread), [], "{minor} {thread}");
        }
    }
    let program = env.program("false_python");
    let output = finish(&mut env.refit_command(&["run", "--heap", "--", &program, "11", "loop"]));
    expect_code(&output, 0);
    Outcome::Pass
}
