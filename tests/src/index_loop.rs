//! The recipes index-loop…: plans that change with the index.

use std::fs;

use serde_json::Value;

use crate::compared::{list, messages, printed, variant};
use crate::recipe_folder::{finish, refit};
use crate::recipes::{check, recipe, require, text};
use crate::remains::{base, nothing_left};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(an_invalid_index_is_noticed).limit_seconds(180),
    test!(an_index_left_ignored_is_told).limit_seconds(180),
    test!(plans_are_told_and_nothing_is_rebuilt_for_reads).limit_seconds(180),
    test!(an_old_server_is_named).limit_seconds(180),
];

/// A copy of the recipe, brief, whose baseline ends with this script; without variants.
fn with_end(env: &TestEnv, name: &str, script: &str) -> Value {
    expect_code(&env.refit(&["recipes", "copy", name, "copy"]), 0);
    env.file("copy/end.sh", script);
    let mut changed = recipe(name);
    changed.as_object_mut().expect("a table").remove("variant");
    changed["check"]["command"] =
        "sh $REFIT_RECIPE/check.sh >/dev/null && sh $REFIT_RECIPE/end.sh".into();
    changed
}

fn write(env: &TestEnv, recipe: &Value) {
    let file = toml::to_string(recipe).expect("it was TOML");
    fs::write(env.path("copy/recipe.toml"), file).expect("the test's directory is ours");
}

fn an_invalid_index_is_noticed(env: &TestEnv) -> Outcome {
    let name = "index-loop-postgres";
    let script = "sh $REFIT_RECIPE/index.sh add customer 2>&1 | sed -n '$p'
. $REFIT_RECIPE/server.sh; client -c \"SELECT count(*) FROM pg_class WHERE relname = 'customer'\"
client -c 'CREATE UNIQUE INDEX CONCURRENTLY left_behind ON orders (customer_id)' 2>/dev/null
sh $REFIT_RECIPE/check.sh 2>&1 | sed -n '$p'";
    let recipe = with_end(env, name, script);
    let index = env.path("copy/index.sh");
    let before = fs::read_to_string(&index).expect("it was copied");
    let unique = before.replace("CREATE INDEX CONC", "CREATE UNIQUE INDEX CONC");
    assert_ne!(before, unique);
    fs::write(index, unique).expect("the test's directory is ours");
    write(env, &recipe);
    let output = check(env, "./copy", &["--yes"]);
    require(env, name, &output);
    let shown = printed(&output);
    let wanted = "baseline: CREATE UNIQUE INDEX CONCURRENTLY left customer INVALID; it was dropped 0 INVALID: left_behind (";
    assert!(shown.contains(wanted), "{shown}");
    nothing_left(env, name);
    Outcome::Pass
}

fn an_index_left_ignored_is_told(env: &TestEnv) -> Outcome {
    let name = "index-loop";
    let script = "sh $REFIT_RECIPE/index.sh add status && sh $REFIT_RECIPE/index.sh ignore status";
    write(env, &with_end(env, name, script));
    let output = check(env, "./copy", &["--yes"]);
    require(env, name, &output);
    expect_code(&output, 1);
    let shown = printed(&output);
    assert!(
        shown.contains(
            "the end of the service: service.stop failed, exit status: 1: left IGNORED: status"
        ),
        "{shown}"
    );
    nothing_left(env, name);
    Outcome::Pass
}

fn plans_are_told_and_nothing_is_rebuilt_for_reads(env: &TestEnv) -> Outcome {
    let name = "index-loop";
    expect_code(&env.refit(&["recipes", "copy", name, "copy"]), 0);
    let mut changed = recipe(name);
    changed.as_object_mut().expect("a table").remove("main");
    changed["load"]["operations"] = 200.into();
    changed["table"]["only"] = true.into();
    let built = env.path("built");
    env.file("built", "");
    env.run(&["chmod", "666", &built]);
    let add = changed["conf"]["index"]["customer_day"]["command"].clone();
    changed["conf"]["index"]["customer_day"]["command"] =
        format!("echo built >>{built}; {}", text(&add)).into();
    write(env, &changed);
    let base = base(env);
    let args = ["compare", "--yes", "--json", "result.json", "--dir", &base];
    let more = [
        "--with",
        "conf.index=customer_day",
        "./copy",
        "conf.ignored=customer_day",
    ];
    let output = finish(&mut refit(env, &[&args[..], &more].concat()));
    require(env, name, &output);
    expect_code(&output, 0);
    let result = fs::read_to_string(env.path("result.json")).expect("it was written");
    let result: Value = serde_json::from_str(&result).expect("it is JSON");
    expect_valid(&result);
    let answer =
        |variant: &Value, at: usize| text(&list(&variant["answers"])[at]["answer"]).to_owned();
    let (_, heeded) = variant(&result, "baseline");
    let (_, ignored) = variant(&result, "conf.ignored=customer_day");
    assert_eq!(answer(heeded, 0), "ref, key customer_day; Using where");
    assert_eq!(
        answer(ignored, 0),
        "ALL, no key; Using where; Using filesort"
    );
    let both = "customer_day (customer_id, created_at)";
    assert_eq!(answer(heeded, 1), format!("{both}, PRIMARY (id)"));
    assert_eq!(answer(ignored, 1), format!("{both} IGNORED, PRIMARY (id)"));
    assert_eq!(fs::read_to_string(&built).expect("it is there"), "built\n");
    nothing_left(env, name);
    Outcome::Pass
}

fn an_old_server_is_named(env: &TestEnv) -> Outcome {
    let path = env.subdir("old");
    let old = env.file(
        "old/mariadbd",
        "#!/bin/sh\necho 'mariadbd  Ver 10.5.29-MariaDB for debian-linux-gnu on x86_64'\n",
    );
    env.run(&["chmod", "755", &old]);
    let base = base(env);
    let mut refit = refit(env, &["compare", "--dir", &base, "index-loop"]);
    let usual = std::env::var("PATH").unwrap_or_default();
    let output = finish(refit.env("PATH", format!("{path}:{usual}")));
    require(env, "index-loop", &output);
    expect_code(&output, 2);
    let messages = messages(&output);
    assert!(
        messages.contains("MariaDB 10.5.29 has no IGNORED indexes; it takes 10.6 or later"),
        "{}",
        described(&output)
    );
    nothing_left(env, "index-loop");
    Outcome::Pass
}
