//! `refit compare`: what was measured is printed and stored, whatever fails afterwards.

use std::fs::{self, File};

use serde_json::Value;

use crate::compare_files::report;
use crate::compared::{compare, effect, list, messages, number, printed};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(a_baseline_that_fails_later_ends_it_with_what_there_is),
    test!(a_full_disk_takes_neither_the_table_nor_other_files),
    test!(an_output_that_is_gone_takes_no_file),
    test!(side_metrics_are_named_where_they_stand_among_all),
];

fn stored(env: &TestEnv) -> Value {
    let text = fs::read_to_string(env.path("result.json")).expect("there is a result");
    let result = serde_json::from_str(&text).expect("it is JSON");
    expect_valid(&result);
    result
}

/// The baseline, and the hidden one, fail from their 23rd run on: in the sixth round pair.
fn a_baseline_that_fails_later_ends_it_with_what_there_is(env: &TestEnv) -> Outcome {
    let (log, sync) = (env.path("log"), env.program("write_fsync"));
    // What differs is a count, which no other load of the machine changes.
    let script = format!(
        "test -z \"$A\" || exit 0; echo >>{log}; test $(wc -l <{log}) -lt 23 || {{ echo full >&2; exit 3; }}; exec {sync} 20 file"
    );
    let args = [
        "compare",
        "--json",
        "result.json",
        "--rounds",
        "40",
        "env.A=1",
    ];
    let options = ["--precision", "0.0001%", "--", "sh", "-c", &script];
    let output = env.refit(&[&args[..], &options].concat());
    expect_code(&output, 2);
    let failed = "the baseline failed: exit code 3 (full)";
    assert!(messages(&output).contains(failed), "{}", described(&output));
    let text = printed(&output);
    for words in [
        "failed: the baseline failed",
        "syncs 20 → 0",
        "4 round pairs",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let result = stored(env);
    let reason = result["failed"].as_str().unwrap_or_default();
    assert!(reason.starts_with(failed), "{reason}");
    for (metric, verdict) in [("wall", None), ("syncs", Some("less"))] {
        let effect = effect(&result, "env.A=1", metric);
        let is_expected = verdict.is_none_or(|verdict| effect["verdict"] == verdict);
        assert!(is_expected && effect["pairs"] == 4, "{effect}");
        assert!(effect["interval"].is_array(), "{effect}");
    }
    let again = report(env, &["result.json"]);
    expect_printed(&again, 0, "failed: the baseline failed");
    Outcome::Pass
}

fn a_full_disk_takes_neither_the_table_nor_other_files(env: &TestEnv) -> Outcome {
    let args = [
        "compare",
        "--json",
        "/dev/full",
        "--csv",
        "runs.csv",
        "--rounds",
        "6",
    ];
    let output = env.refit(&[&args[..], &["env.A=1", "--", "true"]].concat());
    expect_printed(&output, 2, "3 round pairs");
    let words = "cannot write /dev/full: No space left on device";
    assert!(messages(&output).contains(words), "{}", messages(&output));
    let csv = fs::read_to_string(env.path("runs.csv")).expect("it was written");
    assert!(csv.lines().count() > 18, "{csv}");
    Outcome::Pass
}

fn an_output_that_is_gone_takes_no_file(env: &TestEnv) -> Outcome {
    let args = [
        "compare",
        "--json",
        "result.json",
        "--rounds",
        "6",
        "env.A=1",
        "--",
        "true",
    ];
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let mut refit = env.refit_command(&args);
    let output = refit.stdout(full).output().expect("refit starts");
    expect_message(&output, 2, "cannot write to stdout");
    assert_eq!(stored(env)["plan"]["pairs"], 3);
    Outcome::Pass
}

fn side_metrics_are_named_where_they_stand_among_all(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("write_fsync"), env.path("file"));
    let args = [
        "--rounds",
        "20",
        "--precision",
        "0.0001%",
        "sync=off",
        "env.A=1",
    ];
    let (output, result) = compare(env, &[&args[..], &["--", &program, "20", &file]].concat());
    expect_code(&output, 0);
    let text = printed(&output);
    let line = |name: &str| {
        let start = format!("{name} ");
        let mut lines = text.lines().skip_while(|line| !line.starts_with("class "));
        let found = lines.find(|line| line.starts_with(&start));
        found.unwrap_or_default().to_owned()
    };
    let (mut raw, mut stand) = (0, 0);
    for (name, index) in [("sync=off", 1), ("env.A=1", 2)] {
        let effects = list(&result["effects"]).iter();
        for effect in effects.filter(|effect| effect["variant"] == index) {
            let metric = effect["metric"].as_str().expect("it has a name");
            if metric == "wall" {
                assert!(
                    effect["p_value"].is_null() && effect["stands"].is_null(),
                    "{effect}"
                );
                continue;
            }
            let p = number(&effect["p_value"]);
            assert!((0.0..=1.0).contains(&p), "{effect}");
            let stands = effect["stands"] == true;
            // Of 26 metrics none stands that would not stand alone.
            assert!(!stands || p <= 0.05, "{effect}");
            let differs = ["less", "more"]
                .iter()
                .any(|word| effect["verdict"] == *word);
            raw += u32::from(differs);
            stand += u32::from(differs && stands);
            if differs && !stands {
                assert!(!line(name).contains(metric), "{metric}: {text}");
            }
        }
    }
    assert!(stand >= 1 && stand <= raw, "{stand} of {raw}");
    assert_eq!(effect(&result, "sync=off", "syncs")["stands"], true);
    assert!(line("sync=off").contains("less: syncs 20 → 0"), "{text}");
    // What is equal has no metric that stands, but once in twenty such tests.
    assert_eq!(effect(&result, "env.A=1", "syncs")["stands"], false);
    Outcome::Pass
}
