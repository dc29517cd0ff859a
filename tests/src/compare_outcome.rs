//! `refit compare`: what takes part, and what does not.

use serde_json::{Value, json};

use crate::compared::{compare, compare_shell, effect, list, messages, printed, runs_of, variant};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(who_fails_differs_or_hangs_is_out_and_the_others_go_on),
    test!(what_differs_is_the_candidate_whoever_ran_first),
    test!(the_check_judges_each_run),
    test!(without_any_candidate_left_the_answer_is_2),
    test!(a_baseline_that_fails_ends_it_with_its_own_words),
    test!(now_and_then_a_failed_run_costs_its_round_pair_only),
];

/// Why a variant is out; empty for one that is not.
fn reason(result: &Value, name: &str) -> String {
    let (_, variant) = variant(result, name);
    variant["disqualified"]["failed"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn who_fails_differs_or_hangs_is_out_and_the_others_go_on(env: &TestEnv) -> Outcome {
    let program = env.program("write_fsync");
    let script = format!(
        "case $LD_PRELOAD in *jemalloc*) echo no luck today >&2; exit 3;; esac
        case $MODE in
        other) echo something else;;
        hang) tail -f /dev/null & wait;;
        kill) kill -SEGV $$;;
        esac
        echo done; {program} 60 {}",
        env.path("file")
    );
    let out = [
        ("malloc=jemalloc", "exit code 3 (no luck today)", 3),
        (
            "env.MODE=other",
            "printed something else than the baseline",
            1,
        ),
        ("env.MODE=hang", "did not end within 10.0 s (--timeout)", 1),
        ("env.MODE=kill", "killed by signal 11", 3),
    ];
    let options = ["--same-output", "--timeout", "10s", "--rounds", "40"];
    let names: Vec<&str> = out.iter().map(|(name, ..)| *name).collect();
    let rest = ["sync=off", "--", "sh", "-c", &script];
    let (output, result) = compare(env, &[&options, &names[..], &rest].concat());
    expect_code(&output, 0);
    let text = printed(&output);
    for (name, why, runs) in out {
        assert!(
            reason(&result, name).contains(why),
            "{name}: {}",
            reason(&result, name)
        );
        // A differing one that ran before the baseline is told by its next run.
        let made = runs_of(&result, name).len();
        assert!(
            made == runs || (name == "env.MODE=other" && made == 2),
            "{name}: {made} runs"
        );
        let line = text
            .lines()
            .find(|line| line.starts_with("disqualified:") && line.contains(name));
        assert!(
            line.is_some_and(|line| line.contains(&why[..12])),
            "{name} in\n{text}"
        );
        let row = text.lines().find(|line| line.starts_with(name));
        assert!(
            row.is_some_and(|line| line.contains("disqualified")),
            "{name} in\n{text}"
        );
    }
    assert_eq!(reason(&result, "sync=off"), "");
    assert_eq!(effect(&result, "sync=off", "wall")["verdict"], "faster");
    // The warm-up, and round pairs enough for a verdict: the failures of others did not end it.
    let made = runs_of(&result, "sync=off").len();
    assert!(made >= 2 * (1 + 3), "{made} runs");
    Outcome::Pass
}

fn what_differs_is_the_candidate_whoever_ran_first(env: &TestEnv) -> Outcome {
    let mut first = Vec::new();
    for seed in 1..=8 {
        let seed = seed.to_string();
        let args = [
            "--seed",
            &seed,
            "--rounds",
            "14",
            "--same-output",
            "env.MODE=x",
            "env.A=1",
        ];
        let (output, result) = compare(
            env,
            &[&args[..], &["--", "sh", "-c", "echo \"=$MODE\""]].concat(),
        );
        expect_code(&output, 0);
        assert!(
            reason(&result, "env.MODE=x").contains("--same-output"),
            "seed {seed}"
        );
        assert_eq!(reason(&result, "env.A=1"), "", "seed {seed}");
        first.push(result["runs"][0]["variant"].clone());
    }
    let differing = first.iter().filter(|variant| **variant == 1).count();
    assert!(differing > 0 && differing < first.len(), "{first:?}");
    // A command that never says the same twice cannot be compared like this.
    let args = [
        "compare",
        "--same-output",
        "--rounds",
        "12",
        "env.A=1",
        "--",
    ];
    let output = env.refit(&[&args[..], &["cat", "/proc/sys/kernel/random/uuid"]].concat());
    expect_message(&output, 2, "the baseline failed: printed something else");
    Outcome::Pass
}

fn the_check_judges_each_run(env: &TestEnv) -> Outcome {
    let state = env.path("state");
    let script = format!("echo \"$MODE\" >{state}");
    let check = format!("test \"$(cat {state})\" != bad");
    let args = [
        "--check",
        &check,
        "--rounds",
        "14",
        "env.MODE=bad",
        "env.MODE=good",
    ];
    let (output, result) = compare(env, &[&args[..], &["--", "sh", "-c", &script]].concat());
    expect_code(&output, 0);
    assert!(
        reason(&result, "env.MODE=bad").contains("--check failed"),
        "{result}"
    );
    assert_eq!(reason(&result, "env.MODE=good"), "");
    assert!(printed(&output).contains("disqualified: env.MODE=bad: --check failed"));
    let args = [
        "compare", "--check", "false", "--rounds", "12", "env.A=1", "--", "true",
    ];
    let output = env.refit(&args);
    expect_message(&output, 2, "--check failed");
    Outcome::Pass
}

fn without_any_candidate_left_the_answer_is_2(env: &TestEnv) -> Outcome {
    // Two runs of next to nothing differ by any factor on a busy machine.
    let script = "test -z \"$FAIL\" || exit 9; exec sleep 0.1";
    let gate = ["--gate", "wall<+500%", "--rounds", "14"];
    let all = [
        &gate[..],
        &["env.FAIL=1", "env.FAIL=2", "--", "sh", "-c", script],
    ]
    .concat();
    let (output, result) = compare(env, &all);
    expect_code(&output, 2);
    for name in ["env.FAIL=1", "env.FAIL=2"] {
        assert!(reason(&result, name).contains("exit code 9"), "{result}");
        assert!(printed(&output).contains(&format!("disqualified: {name}: exit code 9")));
    }
    // It is not the others' fault, but a gate that cannot be kept is not kept.
    let one = [
        &gate[..],
        &["env.FAIL=1", "env.A=1", "--", "sh", "-c", script],
    ]
    .concat();
    let (output, result) = compare(env, &one);
    expect_code(&output, 1);
    let answers: Vec<&Value> = list(&result["gates"])
        .iter()
        .map(|gate| &gate["answer"])
        .collect();
    assert_eq!(answers, ["failed", "passed"]);
    expect_code(&compare(env, &one[2..]).0, 0);
    Outcome::Pass
}

fn a_baseline_that_fails_ends_it_with_its_own_words(env: &TestEnv) -> Outcome {
    let fails = ["sh", "-c", "echo cannot find my hat >&2; exit 4"];
    let output = env.refit(&[&["compare", "sync=off", "--"], &fails[..]].concat());
    expect_code(&output, 2);
    let text = messages(&output);
    assert!(
        text.contains("the baseline failed: exit code 4 (cannot find my hat)"),
        "{text}"
    );
    assert!(
        text.contains("refit run -- COMMAND") && output.stdout.is_empty(),
        "{text}"
    );
    // Whichever variant comes first, what cannot start is named.
    let output = env.refit(&["compare", "sync=off", "--", "no-such-command-anywhere"]);
    expect_message(&output, 2, "cannot run no-such-command-anywhere");
    Outcome::Pass
}

/// One run of a hundred may fail; its round pair is left out, and reported.
fn now_and_then_a_failed_run_costs_its_round_pair_only(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let script = format!("echo >>{log}; test $(wc -l <{log}) -ne 20");
    let (output, result) = compare_shell(env, "--rounds 16 --precision 0.0001% env.A=1", &script);
    expect_code(&output, 0);
    assert_eq!(result["plan"]["pairs"], 8);
    let runs = list(&result["runs"]);
    assert_eq!(runs.len(), 6 * (1 + 8 + 1));
    let left_out: Vec<&Value> = runs
        .iter()
        .filter(|run| !run["failure"].is_null())
        .collect();
    assert!(
        left_out.len() == 6 && left_out.iter().all(|run| run["pair"] == 3),
        "{left_out:?}"
    );
    assert_eq!(runs[19]["exit"], json!({"code": 1}));
    assert_eq!(effect(&result, "env.A=1", "wall")["pairs"], 8);
    assert_eq!(list(&result["results"][0]["times"]).len(), 16);
    assert!(
        printed(&output).contains("left out: 6 runs"),
        "{}",
        printed(&output)
    );
    Outcome::Pass
}
