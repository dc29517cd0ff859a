//! `refit watch RECIPE`: what a refit of the same user runs now is found by the name of its recipe.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::ran::number;
use crate::recipe_folder::{RecipeFolder, finish, refit};
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, wait_until};

pub const TESTS: &[Test] = &[test!(what_a_recipe_runs_is_found_by_its_name).limit_seconds(180)];

/// A check of the recipe whose load waits until the test goes on.
fn start(env: &TestEnv, folder: &RecipeFolder, started: usize) -> Child {
    let words = [
        "recipes",
        "check",
        &folder.write(),
        "--yes",
        "--dir",
        &base(env),
    ];
    let mut check = refit(env, &words);
    let check = check.stdout(Stdio::piped()).stderr(Stdio::piped());
    let check = check.spawn().expect("refit starts");
    let loading = env.path("loading");
    wait_until("the load", || {
        fs::read_to_string(&loading).is_ok_and(|text| text.lines().count() == started)
    });
    check
}

/// Watches for a second; the service's group at the end.
fn watched(env: &TestEnv, name: &str, what: &str) -> Value {
    let json = env.path("series.json");
    let words = ["watch", "--batch", "--for", "1s", "--json", &json, what];
    let output = finish(&mut refit(env, &words));
    expect_code(&output, 0);
    let text = fs::read_to_string(&json).expect("it was written");
    let series: Value = serde_json::from_str(&text).expect("it is JSON");
    let groups = series["groups"].as_array().expect("a list");
    let index = groups.iter().position(|group| group["name"] == name);
    let index = index.unwrap_or_else(|| panic!("{}", described(&output)));
    let samples = series["samples"].as_array().expect("a list");
    let all = samples.last().expect("samples")["groups"].as_array();
    let mut all = all.expect("a list").iter();
    let group = all.find(|group| group["group"] == index);
    group.expect("it has processes").clone()
}

fn refused(env: &TestEnv, what: &str) -> String {
    let output = finish(&mut refit(env, &["watch", "--batch", what]));
    expect_code(&output, 2);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn what_a_recipe_runs_is_found_by_its_name(env: &TestEnv) -> Outcome {
    let (loading, go) = (env.path("loading"), env.path("go"));
    let wait = format!("echo >>{loading}; until test -e {go}; do sleep 0.1; done; seq 10 >numbers");
    // Another run of this test is a refit of the same user, too.
    let name = format!("watched-{}", std::process::id());
    let path = format!("./{name}");
    let folder = RecipeFolder::service(env, &name).text("load.command", &wait);
    let first = start(env, &folder, 1);
    for what in [&name, &path, &first.id().to_string()] {
        let group = watched(env, &name, what);
        assert!(number(&group["processes"]) > 0, "{what}: {group:#}");
        assert!(
            number(&group["memory"]["pss_bytes"]) > 0,
            "{what}: {group:#}"
        );
    }
    let second = start(env, &folder, 2);
    let message = refused(env, &name);
    let expected = format!("the recipe {name} runs 2 times");
    assert!(message.contains(&expected), "{message}");
    for check in [&first, &second] {
        let word = format!("refit watch {}", check.id());
        assert!(message.contains(&word), "{word}: {message}");
    }
    fs::write(&go, "").expect("the test's directory is ours");
    for check in [first, second] {
        check.wait_with_output().expect("it is our child");
    }
    folder.nothing_left();
    let message = refused(env, &path);
    let expected = format!(
        "no refit of this user runs the recipe {name} now\n  start it: refit compare {path}"
    );
    assert!(message.contains(&expected), "{message}");
    Outcome::Pass
}
