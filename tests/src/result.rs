//! The JSON result: valid against the schema that is shipped, and complete.

use serde_json::{Value, json};

use crate::recipe_folder::RecipeFolder;
use crate::runner::{Outcome, Test};
use crate::schema::{expect_valid, refuses_more, schema};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(every_kind_of_result_is_valid),
    test!(results_of_recipes_are_valid),
    test!(the_schema_refuses_what_is_not_documented),
];

fn every_kind_of_result_is_valid(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    let fsync = env.program("fsync_once");
    let observed = env.report(&["run", "--", &fsync, &file]);
    assert_eq!(observed["totals"]["fsync"]["real"], 1);
    expect_valid(&observed);
    let script = format!("{fsync} {file}; {} {file}", env.program("static_fsync"));
    let preload = ["run", "--backend", "preload", "sync=off", "thp=never", "--"];
    let swapped = env.report(&[&preload[..], &["sh", "-c", &script]].concat());
    assert_eq!(swapped["totals"]["fsync"]["suppressed"], 1);
    assert_eq!(swapped["coverage"]["unreached"][0]["reason"], "static");
    expect_valid(&swapped);
    let (output, failed) = env.refit_json(&["run", "--", "sh", "-c", "exit 3"]);
    expect_code(&output, 3);
    assert_eq!(failed["exit"], json!({"code": 3}));
    expect_valid(&failed);
    let (_, killed) = env.refit_json(&["run", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed["exit"], json!({"signal": 9}));
    expect_valid(&killed);
    let ring = env.report(&["run", "--", &env.program("io_uring_fsync"), &file]);
    assert_eq!(ring["coverage"]["unknown"][0]["what"], "io_uring");
    expect_valid(&ring);
    Outcome::Pass
}

fn results_of_recipes_are_valid(env: &TestEnv) -> Outcome {
    let tiny = RecipeFolder::command(env, "tiny")
        .set("service.ports", "['unused']")
        .text("service.start", "exec sleep 1000")
        .set("service.ready", "{ command = 'true' }")
        .text("load.command", "sleep 0.05; echo 5 done, p50 2.5 ms")
        .set("load.operations", "{ regex = '([0-9]+) done' }")
        .set(
            "load.metrics.p50",
            "{ regex = 'p50 ([0-9.]+)', unit = 'ms', about = 'median' }",
        )
        .text("check.command", "echo all done")
        .set(
            "conf.a.b",
            "{ class = 'bounded-loss', bound = 'newest-only', command = 'touch b', inverse = 'rm b' }",
        )
        .variants(&["conf.a=b", "later=1"]);
    let (output, result) = tiny.compare(&["--quiet", "--rounds", "12", "--bare"]);
    expect_code(&output, 0);
    assert_eq!(result["main"], "rate");
    assert_eq!(result["recipe"]["name"], "tiny");
    assert_eq!(result["recipe"]["folder"], "./tiny");
    assert_eq!(result["recipe"]["is_service"], true);
    assert_eq!(result["recipe"]["metrics"][0]["unit"], "ms");
    assert_eq!(result["recipe"]["why"]["conf.a=b"], "to see");
    assert_eq!(result["unavailable"][0]["settings"], "later=1");
    assert_eq!(result["unavailable"].as_array().map(Vec::len), Some(1));
    assert_eq!(result["variants"][1]["class"], "bounded-loss");
    // A window of this length can pass while refit itself does not run, and has no sample then.
    let runs = result["runs"].as_array().expect("runs");
    let is_sampled = |run: &Value| run.pointer("/load/service/memory/0").is_some();
    let sampled = runs.iter().position(is_sampled).expect("a sample");
    let load = &runs[sampled]["load"];
    assert_eq!(load["operations"], 5);
    assert_eq!(load["values"], json!({"p50": 2.5e6}));
    assert_eq!(load["outcome"], "all done");
    assert!(load["window_ns"].as_u64() >= Some(50_000_000), "{load:#}");
    let service = &load["service"];
    assert_eq!(service["end"]["processes"], 1);
    assert!(
        service["end"]["parent_pss_bytes"].as_u64() > Some(0),
        "{load:#}"
    );

    for place in [
        "",
        "/recipe",
        "/recipe/metrics/0",
        "/unavailable/0",
        "/runs/0/load",
    ] {
        refuses_more(&result, place);
    }
    for place in ["service", "service/end", "service/memory/0"] {
        refuses_more(&result, &format!("/runs/{sampled}/load/{place}"));
    }

    let (output, result) =
        RecipeFolder::command(env, "program").compare(&["--quiet", "--rounds", "12"]);
    expect_code(&output, 0);
    assert_eq!(result["recipe"]["is_service"], false);
    let load = &result["runs"][0]["load"];
    assert_eq!(load["operations"], 10);
    assert_eq!(load.get("service"), None);
    Outcome::Pass
}

fn the_schema_refuses_what_is_not_documented(env: &TestEnv) -> Outcome {
    let mut result = env.report(&["run", "--", "true"]);
    expect_valid(&result);
    let (schemas, index) = schema();
    result["extra"] = json!(1);
    assert!(schemas.validate(&result, index).is_err());
    result.as_object_mut().expect("an object").remove("extra");
    result["exit"] = json!({"code": "0"});
    assert!(schemas.validate(&result, index).is_err());
    Outcome::Pass
}
