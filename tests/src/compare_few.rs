//! `refit compare`: with little time, it shows what there is, and keeps to that time.

use serde_json::{Value, json};

use crate::compared::{
    compare, compare_shell, effect, list, messages, number, printed, runs_of, undecided,
};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(three_round_pairs_tell_a_large_effect).limit_seconds(600),
    test!(less_than_a_round_pair_is_refused),
    test!(two_round_pairs_show_ranges_and_what_is_missing),
    test!(a_budget_that_ends_in_the_warm_up_shows_its_runs),
    test!(a_budget_is_kept_by_a_program_that_becomes_slower),
];

/// Sleeps for as long as the variable says, which the baseline does not have.
const SLEEPS: &str = "exec sleep ${SHORT:-0.2}";

fn three_round_pairs_tell_a_large_effect(env: &TestEnv) -> Outcome {
    let script = format!(
        "test -z \"$SHORT\" || exec sleep $SHORT; {}",
        undecided(env, 800)
    );
    let args = ["--rounds", "6", "env.SHORT=0.1", "env.A=1"];
    let args = [&args[..], &["--", "sh", "-c", &script]].concat();
    // Beside a load a run of 100 ms takes 300 now and then. That three round pairs tell nothing then is right.
    let is_quiet = |result: &Value| {
        [("env.SHORT=0.1", 0.16), ("baseline", 1.0)]
            .into_iter()
            .all(|(name, most_s)| {
                let mut runs = runs_of(result, name).into_iter().skip(1);
                runs.all(|run| number(&run["metrics"]["wall_ns"]) < most_s * 1e9)
            })
    };
    let mut tries = (0..20).map(|_| compare(env, &args));
    let quiet = tries.find(|(_, result)| is_quiet(result));
    let (output, result) = quiet.expect("one of twenty has quiet runs");
    expect_code(&output, 0);
    assert_eq!(result["plan"]["looks"], json!([3]));
    let short = effect(&result, "env.SHORT=0.1", "wall");
    assert_eq!(
        (&short["verdict"], &short["pairs"]),
        (&json!("faster"), &json!(3))
    );
    assert_eq!(short["early"], true);
    let equal = effect(&result, "env.A=1", "wall");
    assert_eq!(equal["verdict"], "inconclusive", "{equal}");
    assert!(equal["interval"].is_array(), "{equal}");
    let text = printed(&output);
    assert!(
        text.contains("faster") && text.contains("inconclusive: env.A=1:"),
        "{text}"
    );
    Outcome::Pass
}

fn two_round_pairs_show_ranges_and_what_is_missing(env: &TestEnv) -> Outcome {
    for (rounds, strict, code) in [("4", &[][..], 0), ("5", &["--strict"], 3)] {
        let args = [
            "--rounds",
            rounds,
            "env.SHORT=0.02",
            "--",
            "sh",
            "-c",
            SLEEPS,
        ];
        let (output, result) = compare(env, &[strict, &args].concat());
        expect_code(&output, code);
        assert_eq!(result["plan"]["pairs"], 2);
        let short = effect(&result, "env.SHORT=0.02", "wall");
        assert_eq!(
            (&short["verdict"], &short["interval"]),
            (&json!("inconclusive"), &json!(null))
        );
        let text = printed(&output);
        for words in [
            "too few runs: an interval needs more than 2 round pairs; wall ranged: baseline ",
            "inconclusive: env.SHORT=0.02: about 6 round pairs",
            "--rounds 12",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(
            !messages(&output).contains("needs"),
            "{}",
            messages(&output)
        );
    }
    Outcome::Pass
}

fn a_budget_that_ends_in_the_warm_up_shows_its_runs(env: &TestEnv) -> Outcome {
    // Three variants, of which each is run once at least.
    for (budget, most) in [("900ms", 5), ("50ms", 3)] {
        let args = ["--budget", budget, "env.A=1", "--", "sh", "-c", SLEEPS];
        let (output, result) = compare(env, &args);
        expect_code(&output, 0);
        let runs = list(&result["runs"]);
        assert!((3..=most).contains(&runs.len()), "{}", runs.len());
        assert_eq!(
            (&result["effects"], &result["plan"]["pairs"]),
            (&json!([]), &json!(0))
        );
        assert!(
            runs.iter().all(|run| run["failure"].is_null()),
            "{}",
            result["runs"]
        );
        let text = printed(&output);
        for words in [
            "a verdict needs 3 round pairs, and none was completed: --budget",
            "wall ranged: baseline ",
            ", env.A=1 ",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
    Outcome::Pass
}

/// From the 20th run on it sleeps fifty times as long.
fn a_budget_is_kept_by_a_program_that_becomes_slower(env: &TestEnv) -> Outcome {
    const SLOW_S: f64 = 0.5;
    const BUDGET_S: f64 = 6.0;
    let log = env.path("log");
    let script = format!(
        "echo >>{log}; test $(wc -l <{log}) -lt 20 && exec sleep 0.01; exec sleep {SLOW_S}"
    );
    let (output, result) = compare_shell(env, "--budget 6s --precision 0.0001% env.A=1", &script);
    expect_code(&output, 0);
    let (plan, runs) = (&result["plan"], list(&result["runs"]));
    let at_s = |run: &Value| number(&run["at_s"]);
    let last = runs.last().expect("it made runs");
    assert!(at_s(last) <= 1.1 * BUDGET_S, "{last} {plan}");
    // On a busy machine the short runs may have used up what the long ones need.
    let slower = runs.get(19).filter(|run| at_s(run) < BUDGET_S / 4.0);
    if slower.is_some() {
        // How long a run really takes, nobody knows before: the last one began when there was time for it.
        assert!(at_s(last) + SLOW_S <= 1.1 * BUDGET_S, "{last} {plan}");
        let planned = list(&plan["looks"]).last().map(number);
        let made = number(&plan["pairs"]);
        assert!((3.0..6.0).contains(&made) && planned > Some(made), "{plan}");
    }
    // The rest of its round pair would have ended too late.
    assert!(printed(&output).contains("env.A=1"), "{}", printed(&output));
    Outcome::Pass
}

fn less_than_a_round_pair_is_refused(env: &TestEnv) -> Outcome {
    for (rounds, why) in [
        ("0", "at least 2"),
        ("1", "at least 2"),
        ("many", "write a number"),
    ] {
        let output = env.refit(&["compare", "--rounds", rounds, "env.A=1", "--", "true"]);
        expect_code(&output, 2);
        assert!(messages(&output).contains(why), "{}", messages(&output));
    }
    Outcome::Pass
}
