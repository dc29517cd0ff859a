//! `refit compare --scan`: the same comparison at several values of one setting.

use std::fs;

use serde_json::Value;

use crate::compared::printed;
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid_by;
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(each_value_has_its_own_load),
    test!(a_command_is_scanned_by_a_variable),
    test!(what_cannot_be_scanned_is_refused),
    test!(one_interruption_keeps_what_was_measured),
];

/// With one session the variant is much faster; with more of them the load takes as long without it.
fn each_value_has_its_own_load(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::command(env, "turns")
        .set(
            "load.knobs.sessions",
            "{ about = 'clients', default = '9', unit = 'session' }",
        )
        .set(
            "load.knobs.mix",
            "{ about = 'what', default = 'reads', choices = ['reads'] }",
        )
        .text(
            "load.command",
            "[ $REFIT_LOAD_SESSIONS$FAST = 1yes ] || sleep 0.1; seq $REFIT_OPERATIONS >numbers",
        );
    folder.write();
    let (dir, json) = (base(env), env.path("scan.json"));
    let words = [
        "compare",
        "--yes",
        "--dir",
        &dir,
        "--rounds",
        "12",
        "--budget",
        "2m",
        "--scan",
        "load.sessions=1,4",
        "--json",
        &json,
        "./turns",
        "env.FAST=yes",
    ];
    let output = finish(&mut refit(env, &words));
    expect_code(&output, 0);
    let text = printed(&output);
    let first = text.lines().take(2).collect::<Vec<_>>().join(" ");
    // Whether the other value is decided depends on how quiet the machine is.
    let lead = "`env.FAST=yes` (changes-behaviour) gains at load.sessions=1 (+";
    let lead_of_two = format!("It depends on load.sessions: {lead}");
    assert!(
        first.starts_with(lead) || first.starts_with(&lead_of_two),
        "{text}"
    );
    assert!(text.contains("measured at mix=reads"), "{text}");
    assert!(
        text.contains("the intervals hold together at 95 % for the 2 values"),
        "{text}"
    );
    let stored = fs::read_to_string(&json).expect("it was asked for");
    let result: Value = serde_json::from_str(&stored).expect("JSON");
    expect_valid_by("scan.schema.json", &result);
    assert_eq!(
        (&result["kind"], &result["setting"]),
        (&"scan".into(), &"load.sessions".into())
    );
    let points = result["points"].as_array().expect("a list");
    let values: Vec<_> = points.iter().map(|one| one["value"].as_str()).collect();
    assert_eq!(values, [Some("1"), Some("4")]);
    for point in points {
        let comparison = &point["comparison"];
        let load = comparison["recipe"]["load"].as_array().expect("a list");
        let sessions = load.iter().find(|one| one["name"] == "sessions");
        assert_eq!(sessions.expect("it is set")["value"], point["value"]);
        // One of two, and one candidate: half of what a comparison alone may be wrong by.
        let alpha = comparison["plan"]["alpha"].as_f64().expect("a number");
        assert!(alpha > 0.0 && alpha <= 0.025, "{alpha}");
    }
    // The same again from the file, and by a comparison of its own.
    expect_printed(&env.refit(&["report", &json]), 0, lead);
    let drawn = ["--md", "--html", "--svg"].map(|option| (option, env.path(&option[2..])));
    for (option, file) in &drawn {
        expect_code(&env.refit(&["report", option, file, &json]), 0);
        let text = fs::read_to_string(file).expect("it was asked for");
        assert!(text.contains("load.sessions=1 (+"), "{text}");
    }
    let svg = fs::read_to_string(&drawn[2].1).expect("it was asked for");
    // One candidate at two values.
    assert_eq!(svg.matches("class=\"reach\"").count(), 2, "{svg}");
    expect_message(
        &env.refit(&["report", "--csv", &env.path("x.csv"), &json]),
        2,
        "--csv: a scan is drawn as --md, --html, --svg or --github-summary",
    );
    Outcome::Pass
}

fn a_command_is_scanned_by_a_variable(env: &TestEnv) -> Outcome {
    let script = "sleep 0.0$N; [ -n \"$FAST\" ] || sleep 0.05";
    let output = env.refit(&[
        "compare",
        "--scan",
        "env.N=1,2",
        "--rounds",
        "8",
        "env.FAST=1",
        "--",
        "sh",
        "-c",
        script,
    ]);
    expect_printed(&output, 0, "gains at env.N=1 (−");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("It depends on"), "{text}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for line in ["env.N=1 (1 of 2)", "env.N=2 (2 of 2)"] {
        assert!(told.contains(line), "{told}");
    }
    Outcome::Pass
}

fn what_cannot_be_scanned_is_refused(env: &TestEnv) -> Outcome {
    let command = ["env.A=1", "--", "true"];
    for (words, text) in [
        (&["--scan", "env.N"][..], "write a setting and its values"),
        (&["--scan", "env.N=1"], "name two values at least"),
        (&["--scan", "env.N=1,2,1"], "`1` is named twice"),
        (&["--scan", "nope=1,2"], "unknown setting `nope`"),
        (
            &["--scan", "env.A=1,2"],
            "env.A is scanned, and the variant env.A=1 sets it",
        ),
        (
            &["--scan", "env.N=1,2", "--with", "env.N=3"],
            "leave it out of --with",
        ),
        (
            &["--scan", "env.N=1,2", "--gate", "wall<+2%"],
            "--gate is of one comparison",
        ),
        (
            &["--scan", "env.N=1,2", "--remeasure"],
            "--remeasure is of one comparison",
        ),
        (
            &["--scan", "env.N=1,2", "--csv", "x.csv"],
            "--csv is of one comparison",
        ),
    ] {
        let output = env.refit(&[&["compare"], words, &command].concat());
        expect_message(&output, 2, text);
    }
    let words = [
        "compare",
        "--scan",
        "load.sessions=1,2",
        "env.A=1",
        "--",
        "true",
    ];
    expect_message(&env.refit(&words), 2, "only a recipe has a load");
    Outcome::Pass
}

fn one_interruption_keeps_what_was_measured(env: &TestEnv) -> Outcome {
    let json = env.path("scan.json");
    let script = "[ $N = 1 ] || kill -INT $PPID; sleep 0.02";
    let words = [
        "compare",
        "--scan",
        "env.N=1,2,3",
        "--rounds",
        "6",
        "--json",
        &json,
        "env.A=1",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = env.refit(&words);
    let text = printed(&output);
    let stored = fs::read_to_string(&json).expect("it was stored");
    let result: Value = serde_json::from_str(&stored).expect("JSON");
    let points = result["points"].as_array().expect("a list");
    assert!(!points.is_empty() && points.len() < 3, "{text}");
    assert!(text.contains("of 3 values were not measured"), "{text}");
    expect_code(&output, 130);
    Outcome::Pass
}
