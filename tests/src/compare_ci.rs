//! What CI systems read of a comparison beside JUnit XML: the step summary of GitHub Actions, and the numbers that
//! benchmark services follow over commits.

use std::fs;
use std::path::Path;

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use crate::compare_files::{make, report};
use crate::compared::{list, number};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(the_summary_is_appended_as_markdown),
    test!(without_the_file_of_a_step_nothing_runs),
    test!(a_summary_keeps_to_the_limit),
    test!(a_baseline_that_fails_is_summarized),
    test!(github_benchmark_reads_the_numbers),
    test!(bencher_reads_the_numbers),
    test!(exact_answers_have_no_numbers),
];

const MIB: usize = 1 << 20;

fn read(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.path(name)).expect("it was written")
}

fn parsed(env: &TestEnv, name: &str) -> Value {
    serde_json::from_str(&read(env, name)).expect("it is JSON")
}

fn the_summary_is_appended_as_markdown(env: &TestEnv) -> Outcome {
    make(env, &["--md", "table.md"]);
    let before = "# Of another command\n";
    let file = env.file("summary", before);
    let draw = |args: &[&str]| {
        let mut refit =
            env.refit_command(&[&["report", "result.json", "--github-summary"], args].concat());
        let output = refit
            .env("GITHUB_STEP_SUMMARY", &file)
            .output()
            .expect("refit starts");
        expect_code(&output, 0);
    };
    draw(&[]);
    let table = read(env, "table.md");
    assert_eq!(read(env, "summary"), format!("{before}\n{table}"));
    draw(&["--csv", "runs.csv"]);
    assert_eq!(read(env, "summary"), format!("{before}\n{table}\n{table}"));
    // The comparison itself.
    let args = [
        "compare",
        "--github-summary",
        "--rounds",
        "4",
        "env.A=1",
        "--",
        "true",
    ];
    let mut refit = env.refit_command(&args);
    let output = refit
        .env("GITHUB_STEP_SUMMARY", &file)
        .output()
        .expect("refit starts");
    expect_code(&output, 0);
    let summary = read(env, "summary");
    let last = summary.strip_prefix(&format!("{before}\n{table}\n{table}\n"));
    let last = last.expect("what was there is kept");
    assert_eq!(
        last.matches("**refit compare** `true`").count(),
        1,
        "{last}"
    );
    assert!(last.contains("| `env.A=1` |"), "{last}");
    Outcome::Pass
}

fn without_the_file_of_a_step_nothing_runs(env: &TestEnv) -> Outcome {
    let mark = env.path("mark");
    let args = [
        "compare",
        "--github-summary",
        "env.A=1",
        "--",
        "touch",
        &mark,
    ];
    let refused = |file: Option<&str>, text: &str| {
        let mut refit = env.refit_command(&args);
        match file {
            Some(file) => refit.env("GITHUB_STEP_SUMMARY", file),
            None => refit.env_remove("GITHUB_STEP_SUMMARY"),
        };
        expect_message(&refit.output().expect("refit starts"), 2, text);
        assert!(!Path::new(&mark).exists(), "{file:?}");
    };
    refused(None, "GITHUB_STEP_SUMMARY is not set");
    refused(Some(""), "GITHUB_STEP_SUMMARY is not set");
    refused(Some(&env.path("none/summary")), "there is no directory");
    refused(Some(&env.subdir("folder")), "cannot write");
    Outcome::Pass
}

/// GitHub shows nothing of a file of more than 1 MiB.
fn a_summary_keeps_to_the_limit(env: &TestEnv) -> Outcome {
    make(env, &["--md", "table.md"]);
    let table = read(env, "table.md");
    let appended = |free: usize| {
        let before = "x".repeat(MIB - free - 1) + "\n";
        let file = env.file("summary", &before);
        let mut refit = env.refit_command(&["report", "result.json", "--github-summary"]);
        let output = refit
            .env("GITHUB_STEP_SUMMARY", &file)
            .output()
            .expect("refit starts");
        expect_code(&output, 0);
        let summary = read(env, "summary");
        assert!(summary.len() <= MIB, "{}", summary.len());
        let own = summary
            .strip_prefix(&before)
            .expect("what was there is kept");
        (
            own.to_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(
        appended(table.len() + 1),
        (format!("\n{table}"), String::new())
    );
    let (cut, _) = appended(table.len());
    let kept = cut.lines().filter(|line| line.starts_with("| `")).count();
    assert!(cut.contains("**cut here:**") && kept > 0, "{cut}");
    let (none, message) = appended(20);
    assert!(
        none.is_empty() && message.contains("has no room left"),
        "{none} {message}"
    );
    Outcome::Pass
}

fn a_baseline_that_fails_is_summarized(env: &TestEnv) -> Outcome {
    let args = [
        "compare",
        "--github-summary",
        "env.A=1",
        "--",
        "sh",
        "-c",
        "exit 7",
    ];
    let mut refit = env.refit_command(&args);
    let output = refit
        .env("GITHUB_STEP_SUMMARY", env.path("summary"))
        .output()
        .expect("refit starts");
    expect_message(&output, 2, "the baseline failed");
    let summary = read(env, "summary");
    assert!(
        summary.contains("the baseline failed: exit code 7"),
        "{summary}"
    );
    Outcome::Pass
}

/// Fails where the value is not as the schema, in the words of the format's documentation, has it.
fn expect_schema(schema: Value, value: &Value) {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler
        .add_resource("file:///schema.json", schema)
        .expect("it is JSON");
    let index = compiler
        .compile("file:///schema.json", &mut schemas)
        .expect("it is a schema");
    if let Err(error) = schemas.validate(value, index) {
        panic!("{error:#}\n{value:#}");
    }
}

/// The walls of the runs that count, sorted.
fn walls(result: &Value, variant: usize) -> Vec<f64> {
    let runs = list(&result["runs"]).iter();
    let counts = |run: &&Value| run["variant"] == variant && run["warmup"] != json!(true);
    let mut walls: Vec<f64> = runs
        .filter(counts)
        .map(|run| number(&run["metrics"]["wall_ns"]))
        .collect();
    walls.sort_by(f64::total_cmp);
    walls
}

/// Value and ends against the runs: the median, and a quarter of the runs outside of each end.
#[track_caller]
fn expect_median(walls: &[f64], value: f64, [low, high]: [f64; 2]) {
    let half = walls.len() / 2;
    assert!(
        walls[half - 1] <= value && value <= walls[half],
        "{value} of {walls:?}"
    );
    let within = walls
        .iter()
        .filter(|wall| low <= **wall && **wall <= high)
        .count();
    assert!(
        within * 2 >= walls.len() && within < walls.len(),
        "{low} to {high} of {walls:?}"
    );
}

fn github_benchmark_reads_the_numbers(env: &TestEnv) -> Outcome {
    make(env, &["--github-benchmark", "first.json"]);
    expect_code(
        &report(env, &["result.json", "--github-benchmark", "again.json"]),
        0,
    );
    assert_eq!(read(env, "first.json"), read(env, "again.json"));
    let (entries, result) = (parsed(env, "first.json"), parsed(env, "result.json"));
    let text = json!({"type": "string", "minLength": 1});
    expect_schema(
        json!({
            "$schema": "http://json-schema.org/draft-07/schema",
            "type": "array", "minItems": 1,
            "items": {
                "type": "object", "required": ["name", "unit", "value"], "additionalProperties": false,
                "properties": {"name": text, "unit": text, "value": {"type": "number"}, "range": text, "extra": text}
            }
        }),
        &entries,
    );
    let entry = |end: &str| {
        let mut entries = list(&entries).iter();
        entries.find(|entry| {
            entry["name"]
                .as_str()
                .is_some_and(|name| name.ends_with(end))
        })
    };
    let baseline = entry(": baseline: wall").expect("the baseline");
    assert_eq!(baseline["unit"], "ns");
    let range = baseline["range"]
        .as_str()
        .and_then(|range| range.split_once(" to "));
    let (low, high) = range.expect("two ends");
    let ends = [low, high].map(|end| end.parse().expect("a number"));
    expect_median(&walls(&result, 0), number(&baseline["value"]), ends);
    let slow = entry(": env.SLOW=1: wall / baseline").expect("a candidate");
    assert!(number(&slow["value"]) > 2.0, "{slow}");
    assert!(entry(": env.OUT=1: wall").is_none(), "{entries:#}");
    Outcome::Pass
}

fn bencher_reads_the_numbers(env: &TestEnv) -> Outcome {
    make(env, &["--bencher", "first.json"]);
    expect_code(&report(env, &["result.json", "--bencher", "again.json"]), 0);
    assert_eq!(read(env, "first.json"), read(env, "again.json"));
    let (all, result) = (parsed(env, "first.json"), parsed(env, "result.json"));
    let (numbers, name) = (json!({"type": "number"}), json!({"maxLength": 1024}));
    expect_schema(
        json!({
            "$schema": "http://json-schema.org/draft-07/schema",
            "type": "object", "minProperties": 1, "propertyNames": name,
            "additionalProperties": {
                "type": "object", "minProperties": 1, "propertyNames": {"maxLength": 64},
                "additionalProperties": {
                    "type": "object", "required": ["value"], "additionalProperties": false,
                    "properties": {"value": numbers, "lower_value": numbers, "upper_value": numbers}
                }
            }
        }),
        &all,
    );
    let benchmark = |end: &str| {
        let mut all = all.as_object().expect("an object").iter();
        all.find(|(name, _)| name.ends_with(end))
            .map(|(_, measures)| measures)
    };
    let baseline = &benchmark(": baseline").expect("the baseline")["wall"];
    let [value, low, high] =
        ["value", "lower_value", "upper_value"].map(|key| number(&baseline[key]));
    expect_median(&walls(&result, 0), value, [low, high]);
    let slow = benchmark(": env.SLOW=1").expect("a candidate");
    let measures: Vec<&String> = slow.as_object().expect("measures").keys().collect();
    assert_eq!(measures, ["max-rss", "max-rss-ratio", "wall", "wall-ratio"]);
    let effects = list(&result["effects"]).iter();
    let mut of_slow = effects.filter(|effect| effect["variant"] == 3 && effect["metric"] == "wall");
    let effect = of_slow.next().expect("an effect");
    let ratio = &slow["wall-ratio"];
    assert!(
        (number(&ratio["value"]) - 1.0 - number(&effect["change"])).abs() < 1e-5,
        "{ratio} {effect}"
    );
    let low = number(&effect["interval"][0]) + 1.0;
    assert!(
        (number(&ratio["lower_value"]) - low).abs() < 1e-5,
        "{ratio} {effect}"
    );
    assert!(benchmark(": env.OUT=1").is_none(), "{all:#}");
    Outcome::Pass
}

fn exact_answers_have_no_numbers(env: &TestEnv) -> Outcome {
    for option in ["--github-benchmark", "--bencher"] {
        let output = env.refit(&["compare", option, "numbers.json", "leap-second"]);
        assert!(
            described(&output).contains(option),
            "{}",
            described(&output)
        );
        expect_message(&output, 2, "measures nothing; leave it out");
    }
    Outcome::Pass
}
