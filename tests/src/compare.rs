//! `refit compare`: what it concludes from its runs, and when it ends.

use std::process::Output;

use serde_json::{Value, json};

use crate::compared::{compare, compare_shell, effect, list, number, printed, ratios, variant};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_large_effect_is_told_with_its_interval),
    test!(two_equal_variants_get_a_word_and_the_second_baseline_no_name),
    test!(a_winner_is_confirmed_with_a_fresh_seed),
    test!(a_confirmation_that_fails_takes_no_result_with_it),
    test!(a_wanted_precision_ends_it_and_nothing_else_does).limit_seconds(120),
    test!(an_open_for_synchronous_writes_counts_as_syncing),
    test!(durable_writes_are_shown_beside_the_syncs),
    test!(what_never_syncs_has_nothing_to_gain),
    test!(where_fewer_durable_calls_are_made_nothing_is_safe),
    test!(less_work_the_second_time_is_told),
];

/// As many round pairs as ranks need, however long one takes: no early look ends it.
const FIXED_LENGTH: [&str; 4] = ["--rounds", "16", "--precision", "0.0001%"];

fn a_large_effect_is_told_with_its_interval(env: &TestEnv) -> Outcome {
    const SYNCS: u64 = 60;
    let program = env.program("write_fsync");
    let command = [program.as_str(), &SYNCS.to_string(), &env.path("file")];
    let (output, result) = compare(
        env,
        &[&FIXED_LENGTH[..], &["sync=off", "--"], &command].concat(),
    );
    expect_code(&output, 0);
    let told = effect(&result, "sync=off", "wall");
    assert_eq!(
        (&told["verdict"], &told["gain"]),
        (&json!("faster"), &json!(true))
    );
    assert_eq!(effect(&result, "sync=off", "syncs")["verdict"], "less");

    let wall = |run: &Value| number(&run["metrics"]["wall_ns"]);
    let [least, most] = ratios(&result, 1, wall).map(|ratio| ratio - 1.0);
    let [low, high] = [0, 1].map(|end| number(&told["interval"][end]));
    let change = number(&told["change"]);
    assert!(
        least - 1e-9 <= low && low <= change && change <= high && high <= most + 1e-9,
        "{told}"
    );
    assert!(high < 0.0, "{told}");

    for run in list(&result["runs"]) {
        assert_eq!(
            (&run["exit"], &run["failure"]),
            (&json!({"code": 0}), &Value::Null)
        );
        let metrics = &run["metrics"];
        assert!(
            number(&metrics["wall_ns"]) > 0.0 && number(&metrics["minor_faults"]) > 0.0,
            "{run}"
        );
        assert!(
            number(&metrics["user_ns"]) + number(&metrics["system_ns"]) > 0.0,
            "{run}"
        );
        let fsync = &run["totals"]["fsync"];
        let is_candidate = run["variant"] == 1;
        let (suppressed, real) = if is_candidate { (SYNCS, 0) } else { (0, SYNCS) };
        assert_eq!(fsync["suppressed"], suppressed, "{run}");
        assert_eq!(fsync["real"], real, "{run}");
        assert_eq!(number(&fsync["waited_ns"]) > 0.0, !is_candidate, "{run}");
    }
    let text = printed(&output);
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("baseline"))
        .expect("it has a row");
    assert!(
        lines[at + 1].starts_with("sync=off") && lines[at + 1].contains("faster"),
        "{text}"
    );
    assert!(
        text.contains("loses-on-crash") && text.contains("60 suppressed"),
        "{text}"
    );
    Outcome::Pass
}

fn two_equal_variants_get_a_word_and_the_second_baseline_no_name(env: &TestEnv) -> Outcome {
    let (output, result) = compare(
        env,
        &[&FIXED_LENGTH[..], &["env.FOO=1", "--", "true"]].concat(),
    );
    expect_code(&output, 0);
    let words = ["faster", "slower", "same", "inconclusive"];
    let verdict = effect(&result, "env.FOO=1", "wall")["verdict"].clone();
    assert!(words.iter().any(|word| verdict == *word), "{verdict}");
    let text = printed(&output);
    assert!(
        verdict.as_str().is_some_and(|word| text.contains(word)),
        "{text}"
    );
    let hidden: Vec<&Value> = list(&result["variants"])
        .iter()
        .filter(|v| v["role"] == "hidden")
        .collect();
    assert_eq!(hidden.len(), 1);
    let name = hidden[0]["name"].as_str().expect("a name is text");
    assert!(effect(&result, name, "wall")["verdict"].is_null());
    assert_eq!(effect(&result, name, "wall")["pairs"], 8);
    assert!(!text.contains(name), "{text}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains(name));
    assert!(text.contains("noise floor today"), "{text}");
    Outcome::Pass
}

fn a_winner_is_confirmed_with_a_fresh_seed(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("write_fsync"), env.path("file"));
    let args = [
        "--remeasure",
        "--seed",
        "7",
        "--rounds",
        "16",
        "env.A=1",
        "sync=off",
        "--",
    ];
    let (output, result) = compare(env, &[&args[..], &[&program, "60", &file]].concat());
    expect_code(&output, 0);
    let again = &result["confirmation"];
    let names: Vec<&Value> = list(&again["variants"])
        .iter()
        .map(|v| &v["name"])
        .collect();
    assert_eq!(names[..2], ["baseline", "sync=off"]);
    assert_eq!((names.len(), &result["seed"]), (3, &json!(7)));
    assert_ne!(again["seed"], result["seed"]);
    assert!(number(&again["plan"]["pairs"]) >= 8.0, "{}", again["plan"]);
    assert_eq!(list(&again["runs"]).len(), 6 * 9);
    assert_eq!(effect(again, "sync=off", "wall")["verdict"], "faster");
    let text = printed(&output);
    assert!(text.contains("confirmation: sync=off"), "{text}");
    // Nothing gained, nothing to confirm.
    let slower = "test -z \"$A\" || exec sleep 0.3";
    let (output, result) = compare_shell(env, "--remeasure --rounds 12 env.A=1", slower);
    expect_code(&output, 0);
    assert_eq!(effect(&result, "env.A=1", "wall")["verdict"], "slower");
    assert!(result["confirmation"].is_null());
    Outcome::Pass
}

fn a_confirmation_that_fails_takes_no_result_with_it(env: &TestEnv) -> Outcome {
    const RUNS: usize = 6 * 9;
    let log = env.path("log");
    let script = format!(
        "echo >>{log}; test $(wc -l <{log}) -le {RUNS} || exit 5; test -n \"$FAST\" || exec sleep 0.2"
    );
    let args = ["--remeasure", "env.FAST=1", "--", "sh", "-c", &script];
    let (output, result) = compare(env, &[&FIXED_LENGTH[..], &args].concat());
    expect_code(&output, 0);
    assert_eq!(effect(&result, "env.FAST=1", "wall")["verdict"], "faster");
    assert_eq!(list(&result["runs"]).len(), RUNS);
    assert!(result["confirmation"].is_null());
    let warnings = result["warnings"].to_string();
    assert!(
        warnings.contains("there is no confirmation") && warnings.contains("exit code 5"),
        "{warnings}"
    );
    assert!(
        printed(&output).contains("there is no confirmation"),
        "{}",
        printed(&output)
    );
    Outcome::Pass
}

fn a_wanted_precision_ends_it_and_nothing_else_does(env: &TestEnv) -> Outcome {
    let compared = |seconds: &str, args: &[&str]| {
        let script = format!("test -n \"$A\" || exec sleep {seconds}");
        let command = ["env.A=1", "--", "sh", "-c", &script];
        let (output, result) = compare(env, &[args, &command].concat());
        expect_code(&output, 0);
        let pairs = result["plan"]["pairs"].as_u64().expect("a count");
        (pairs, effect(&result, "env.A=1", "wall")["verdict"].clone())
    };
    // Longer than a busy machine holds up a run.
    let (pairs, verdict) = compared("0.3", &["--rounds", "30"]);
    assert!(pairs < 15, "a verdict ends it: {pairs}");
    assert_eq!(verdict, "faster");
    let (pairs, verdict) = compared("0.3", &["--rounds", "30", "--precision", "99%"]);
    assert!((8..12).contains(&pairs), "{pairs}");
    assert_eq!(verdict, "faster");
    let (pairs, _) = compared("0.02", &["--rounds", "30", "--precision", "0.0001%"]);
    assert_eq!(pairs, 15);
    Outcome::Pass
}

fn an_open_for_synchronous_writes_counts_as_syncing(env: &TestEnv) -> Outcome {
    let nothing = "no sync call was seen";
    let to = format!("of={}", env.path("file"));
    let dd = ["dd", "if=/dev/zero", &to, "bs=4k", "count=60"];
    let args = ["--rounds", "40", "sync=off", "--"];
    let (_, result) = compare(env, &[&args[..], &dd, &["oflag=dsync"]].concat());
    assert_eq!(effect(&result, "sync=off", "wall")["verdict"], "faster");
    let (output, result) = compare(env, &[&args[..], &dd].concat());
    let (_, candidate) = variant(&result, "sync=off");
    assert_eq!(
        candidate["disqualified"],
        json!({ "not_in_effect": ["no_sync_call"] })
    );
    assert!(printed(&output).contains(nothing));
    Outcome::Pass
}

fn durable_writes_are_shown_beside_the_syncs(env: &TestEnv) -> Outcome {
    let to = format!("of={}", env.path("file"));
    let dd = [
        "dd",
        "if=/dev/zero",
        &to,
        "bs=4k",
        "count=60",
        "oflag=dsync",
    ];
    let (output, result) = compare(
        env,
        &[&["--rounds", "6", "sync=off", "--"][..], &dd].concat(),
    );
    let cell = match variant(&result, "baseline").1["witness"]["seen"]["calls"].as_u64() {
        Some(calls) => {
            assert!(calls >= 60, "{result:#}");
            format!("{calls} with O_SYNC writes")
        }
        None => "0 + O_SYNC writes".to_owned(),
    };
    assert!(printed(&output).contains(&cell), "{}", printed(&output));
    Outcome::Pass
}

fn what_never_syncs_has_nothing_to_gain(env: &TestEnv) -> Outcome {
    let first = |output: &Output| {
        printed(output)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let (output, _) = compare(
        env,
        &["--rounds", "6", "sync=off", "disk=8ms", "--", "true"],
    );
    let known = match env.as_root() {
        true => "Nothing to gain: the command never syncs",
        false => "Nothing to gain: no sync call of the command was seen",
    };
    assert_eq!(first(&output), known);
    expect_code(&output, 0);
    // By an instruction of its own: refit sees no call, and does not say that there is none.
    let raw = env.program("inline_asm_fsync");
    let file = env.path("raw");
    let (output, result) = compare(env, &["--rounds", "6", "sync=off", "--", &raw, &file]);
    if variant(&result, "baseline").1["witness"]["seen"]["calls"].as_u64() > Some(0) {
        assert!(
            !first(&output).contains("Nothing to gain"),
            "{}",
            first(&output)
        );
    }
    Outcome::Pass
}

fn where_fewer_durable_calls_are_made_nothing_is_safe(env: &TestEnv) -> Outcome {
    let sync = env.program("fsync_once");
    let file = env.path("file");
    // The variant leaves the syncs out by itself, which no declaration tells.
    let script = format!(
        "n=20; while [ $n -gt 0 ]; do n=$((n - 1)); test -n \"$FAST\" || {sync} {file}; done; sleep 0.05"
    );
    let args = ["--rounds", "16", "env.FAST=1", "--", "sh", "-c", &script];
    let (output, result) = compare(env, &args);
    let (_, fast) = variant(&result, "env.FAST=1");
    let fewer = &fast["fewer_durable"];
    assert_eq!(fewer["variant"], 0.0, "{fast:#}");
    assert!(fewer["baseline"].as_f64() >= Some(20.0), "{fast:#}");
    let text = printed(&output);
    assert!(
        text.starts_with("Only if losing data at a power cut is acceptable: "),
        "{text}"
    );
    assert!(text.contains("fewer syncs: env.FAST=1"), "{text}");
    Outcome::Pass
}

fn less_work_the_second_time_is_told(env: &TestEnv) -> Outcome {
    let (built, done) = (env.path("built"), env.path("done"));
    let build = |seconds| {
        format!("test -e {built} || {{ sleep {seconds}; echo >{built}; echo >>{done}; }}")
    };
    // Far longer than any other run takes, also on a busy machine.
    let once = build("4");
    let command = ["env.A=1", "--", "sh", "-c", &once];
    // Whichever variant comes first.
    for seed in ["1", "2", "3", "4"] {
        let _ = std::fs::remove_file(&built);
        let args = ["--rounds", "12", "--seed", seed];
        let (output, result) = compare(env, &[&args[..], &command].concat());
        let warnings = result["warnings"].to_string();
        assert!(
            warnings.contains("less work the second time") && warnings.contains("--prepare"),
            "{warnings}"
        );
        assert!(
            printed(&output).contains("warning: the first run"),
            "{}",
            printed(&output)
        );
    }
    let _ = std::fs::remove_file(&done);
    let clean = format!("rm -f {built}");
    let args = ["--rounds", "12", "--prepare", &clean];
    let each_time = build("0.1");
    let command = ["env.A=1", "--", "sh", "-c", &each_time];
    let (_, result) = compare(env, &[&args[..], &command].concat());
    let runs = list(&result["runs"]);
    let done = std::fs::read_to_string(&done).expect("it was written");
    assert_eq!(done.lines().count(), runs.len(), "each run does all of it");
    // A busy machine may have held up the first run.
    let (first, later) = runs.split_first().expect("it made runs");
    let wall = |run: &Value| number(&run["metrics"]["wall_ns"]);
    let mut same = later
        .iter()
        .filter(|run| run["variant"] == first["variant"]);
    let was_held_up = same.all(|run| wall(first) > 2.0 * wall(run));
    let is_told = result["warnings"].to_string().contains("second time");
    assert_eq!(is_told, was_held_up, "{}", result["warnings"]);
    Outcome::Pass
}
