//! `refit compare`: what it runs, in which order, and on what ground.

use serde_json::{Value, json};

use crate::compared::{
    compare, compare_shell, effect, list, messages, number, pairs, printed, runs_of, variant,
    witnessed,
};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(another_program_is_compared_with_the_commands_own),
    test!(a_variant_has_the_last_word_over_with),
    test!(each_second_round_mirrors_the_first),
    test!(the_seed_alone_decides_the_order),
    test!(every_variant_stands_on_the_same_library),
    test!(a_round_pair_has_one_size_of_environment),
    test!(settings_of_with_lie_under_everything),
];

fn each_second_round_mirrors_the_first(env: &TestEnv) -> Outcome {
    let candidates = ["env.A=1", "env.A=2", "env.A=3"];
    let args = [&["--rounds", "14"], &candidates[..], &["--", "true"]].concat();
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    let (pairs, count) = (pairs(&result), candidates.len() + 2);
    assert_eq!(pairs.len(), 1 + 7);
    assert_eq!(result["plan"]["pairs"], 7);
    let mut orders = Vec::new();
    for (number, pair) in pairs.iter().enumerate() {
        assert_eq!(pair.len(), 2 * count);
        for (at, run) in pair.iter().enumerate() {
            assert_eq!(run["pair"], number);
            assert_eq!(run["warmup"], number == 0);
            assert_eq!(
                (&run["round"], &run["slot"]),
                (&json!(at / count), &json!(at % count))
            );
        }
        let order: Vec<u64> = pair
            .iter()
            .filter_map(|run| run["variant"].as_u64())
            .collect();
        let (first, second) = order.split_at(count);
        assert!(first.iter().eq(second.iter().rev()), "{order:?}");
        let mut sorted = first.to_owned();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..count as u64), "{order:?}");
        orders.push(first.to_owned());
    }
    assert!(orders.iter().any(|order| order != &orders[0]), "{orders:?}");
    let mut before = -1.0;
    for run in list(&result["runs"]) {
        assert!(number(&run["at_s"]) > before);
        before = number(&run["at_s"]);
    }
    Outcome::Pass
}

fn the_seed_alone_decides_the_order(env: &TestEnv) -> Outcome {
    let order = |seed: &str| -> (Value, Vec<Value>) {
        let args = ["--rounds", "12", "--seed", seed, "env.A=1", "--", "true"];
        let (output, result) = compare(env, &args);
        expect_code(&output, 0);
        let runs = list(&result["runs"]).iter();
        // As many as there are whenever it ends.
        let order = runs.take(7 * 6).map(|run| run["variant"].clone()).collect();
        (result["seed"].clone(), order)
    };
    let first = order("0x2a");
    assert_eq!(first.0, 42);
    assert_eq!(first.1.len(), 7 * 6);
    assert_eq!(order("42"), first);
    assert_ne!(order("43").1, first.1);
    Outcome::Pass
}

fn every_variant_stands_on_the_same_library(env: &TestEnv) -> Outcome {
    let (log, program) = (env.path("preloads"), env.program("fsync_once"));
    let script = format!(
        "echo \"$LD_PRELOAD\" >>{log}; {program} {}",
        env.path("file")
    );
    let (output, result) = compare_shell(env, "--bare --rounds 14 sync=off env.A=1", &script);
    expect_code(&output, 0);
    let (bare, _) = variant(&result, "bare");
    let text = std::fs::read_to_string(&log).expect("each run wrote there");
    let runs = list(&result["runs"]);
    let preloads: Vec<&str> = text.lines().collect();
    assert_eq!(preloads.len(), runs.len() + witnessed(&result));
    let mut libraries: Vec<&str> = Vec::new();
    for (run, preload) in runs.iter().zip(preloads) {
        if run["variant"] == bare {
            assert_eq!(preload, "");
            assert_eq!(run["totals"], json!({}));
        } else {
            assert_eq!(run["totals"]["fsync"]["seen"], 1);
            libraries.push(preload);
        }
    }
    libraries.dedup();
    assert_eq!(libraries.len(), 1, "{libraries:?}");
    assert!(libraries[0].contains("refit"), "{libraries:?}");
    assert!(effect(&result, "bare", "wall")["verdict"].is_null());
    let text = printed(&output);
    assert!(text.contains("overhead of refit:"), "{text}");
    Outcome::Pass
}

fn a_round_pair_has_one_size_of_environment(env: &TestEnv) -> Outcome {
    let log = env.path("sizes");
    // The shell's own, as exec gave it.
    let script = format!("wc -c </proc/$$/environ >>{log}; true");
    let long = format!("env.LONG={}", "x".repeat(300));
    let args = [
        "--bare",
        "--rounds",
        "14",
        "--seed",
        "1",
        &long,
        "malloc=glibc:arena_max=2",
    ];
    let (output, result) = compare(env, &[&args[..], &["--", "sh", "-c", &script]].concat());
    expect_code(&output, 0);
    let text = std::fs::read_to_string(&log).expect("each run wrote there");
    let mut sizes = text
        .lines()
        .map(|line| line.trim().parse::<u64>().expect("wc prints numbers"));
    let mut of_pairs = Vec::new();
    for pair in pairs(&result) {
        let sizes: Vec<u64> = sizes.by_ref().take(pair.len()).collect();
        assert_eq!(sizes.len(), 10);
        assert!(
            sizes[0] > 300 && sizes.iter().all(|size| *size == sizes[0]),
            "{sizes:?}"
        );
        of_pairs.push(sizes[0]);
    }
    of_pairs.sort_unstable();
    of_pairs.dedup();
    // Else one lucky size would stand for all.
    assert!(of_pairs.len() > 2, "{of_pairs:?}");
    Outcome::Pass
}

fn settings_of_with_lie_under_everything(env: &TestEnv) -> Outcome {
    let (log, program) = (env.path("log"), env.program("fsync_once"));
    let script = format!("echo \"$BASE\" >>{log}; {program} {}", env.path("file"));
    let args = [
        "--with",
        "env.BASE=under",
        "--with",
        "sync=off",
        "--bare",
        "--rounds",
        "12",
    ];
    let (output, result) = compare(
        env,
        &[&args[..], &["env.A=1", "--", "sh", "-c", &script]].concat(),
    );
    expect_code(&output, 0);
    let text = std::fs::read_to_string(&log).expect("each run wrote there");
    assert!(text.lines().all(|line| line == "under"), "{text}");
    let runs = list(&result["runs"]).len() + witnessed(&result);
    assert_eq!(text.lines().count(), runs);
    for name in ["baseline", "env.A=1"] {
        for run in runs_of(&result, name) {
            assert_eq!(run["totals"]["fsync"]["suppressed"], 1, "{run}");
        }
    }
    let with: Vec<&Value> = list(&result["with"])
        .iter()
        .map(|with| &with["setting"])
        .collect();
    assert_eq!(with, ["env.BASE=under", "sync=off"]);
    let text = printed(&output);
    assert!(
        text.contains("sync=off (loses-on-crash) under every variant"),
        "{text}"
    );
    Outcome::Pass
}

/// A script in the test's directory.
fn script(env: &TestEnv, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = env.file(name, &format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

fn another_program_is_compared_with_the_commands_own(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    script(env, "new", &format!("echo $0 $* >>{log}; sleep 0.1"));
    script(env, "old", &format!("echo $0 $* >>{log}"));
    let args = ["--rounds", "40", "program=./old", "--", "./new", "a", "b c"];
    let (output, result) = compare(env, &args);
    expect_code(&output, 0);
    assert_eq!(
        effect(&result, "program=./old", "wall")["verdict"],
        "faster"
    );
    let (_, old) = variant(&result, "program=./old");
    assert_eq!(old["class"], "changes-behaviour");
    assert_eq!(old["settings"][0]["in_effect"], "everywhere");
    let text = std::fs::read_to_string(&log).expect("each run wrote there");
    let ran = |line: &str| text.lines().filter(|ran| *ran == line).count();
    assert_eq!(ran("./old a b c"), runs_of(&result, "program=./old").len());
    assert_eq!(
        ran("./old a b c") + ran("./new a b c"),
        list(&result["runs"]).len(),
        "{text}"
    );
    let recipe = env.refit(&["compare", "fsync-loop", "program=./old"]);
    expect_code(&recipe, 2);
    assert!(messages(&recipe).contains("a recipe has its own commands"));
    Outcome::Pass
}

fn a_variant_has_the_last_word_over_with(env: &TestEnv) -> Outcome {
    let log = env.path("log");
    let command = format!("echo $BIN >>{log}");
    let (output, result) = compare_shell(
        env,
        "--with env.BIN=./old --rounds 12 env.BIN=./new",
        &command,
    );
    expect_code(&output, 0);
    let text = std::fs::read_to_string(&log).expect("each run wrote there");
    let ran = |value: &str| text.lines().filter(|ran| *ran == value).count();
    let runs = runs_of(&result, "env.BIN=./new").len();
    assert_eq!(
        (ran("./new"), ran("./old")),
        (runs, list(&result["runs"]).len() - runs)
    );
    Outcome::Pass
}
