//! `refit compare --heap RECIPE`: why the memory of a service is what it is, of programs whose memory grows for one
//! known reason (tests/programs/memory_kinds.c).

use serde_json::Value;

use crate::compared::{list, printed, variant};
use crate::recipe_folder::RecipeFolder;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(each_variant_is_told_what_grows).limit_seconds(300),
    test!(without_progress_only_what_is_there_is_told).limit_seconds(120),
    test!(a_service_that_is_kept_has_no_start_of_its_own),
];

/// What memory grows by, and the cause that is told.
const KINDS: [(&str, &str); 6] = [
    ("leak", "live"),
    ("internal", "internal"),
    ("holes", "external"),
    ("retained", "retained"),
    ("stacks", "stacks"),
    ("cow", "copied"),
];

/// A service that does some operations of its kind for each line. Only where its heap is counted there are many lines,
/// and time for a reading between two of them.
fn service<'a>(env: &'a TestEnv, name: &str) -> RecipeFolder<'a> {
    let program = env.program("memory_kinds");
    let load = "steps=3; pause=0; first=$(cat pid)
        ! grep -q librefit-heap /proc/$first/maps || { steps=120; pause=0.1; }
        while [ $steps -gt 0 ]; do
            echo >ask; read -r done rest <answer; echo \"$done done\"
            steps=$((steps - 1)); sleep $pause
        done";
    RecipeFolder::command(env, name)
        .text("service.setup", "mkfifo ask answer; echo none >kind")
        .text(
            "service.start",
            &format!("echo $$ >pid; exec {program} $(cat kind) 33 <>ask 1<>answer 2>log"),
        )
        .set("service.ready", "{ command = 'test -s pid' }")
        // What forks leaves a child.
        .text("service.stop", "kill $(cat pid) $(pgrep -P $(cat pid))")
        .text("load.warmup", "read -r line <answer")
        .text("load.command", load)
        .set("load.operations", "{ regex = '([0-9]+) done' }")
        .set("load.progress", "{ regex = '^([0-9]+) done$' }")
        .text("check.command", "echo done")
}

/// What is told of a variant: its cause and what grows.
fn told(result: &Value, name: &str) -> Value {
    let memory = &variant(result, name).1["memory"];
    assert!(memory["known"].is_object(), "{name}: {memory:#}");
    memory["known"].clone()
}

fn each_variant_is_told_what_grows(env: &TestEnv) -> Outcome {
    let mut folder = service(env, "kinds");
    for (kind, _) in KINDS {
        let edit = format!("{{ class = 'safe', file = 'kind', from = 'none', to = '{kind}' }}");
        folder = folder.set(&format!("conf.kind.{kind}"), &edit);
    }
    folder = folder.set("conf.kind.about", "'what grows'");
    let settings = KINDS.map(|(kind, _)| format!("conf.kind={kind}"));
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let folder = folder.variants(&settings);
    let (output, result) = folder.compare(&["--heap", "--quiet", "--rounds", "2"]);
    expect_code(&output, 0);
    let shown = printed(&output);
    let baseline = told(&result, "baseline");
    assert_eq!(baseline["growth"], Value::Array(Vec::new()), "{baseline:#}");
    for ((kind, cause), name) in KINDS.iter().zip(settings) {
        let told = told(&result, name);
        assert!(told["growth"].is_array(), "{kind}: {told:#}");
        assert_eq!(told["cause"], *cause, "{kind}: {told:#}");
        let first = &list(&told["growth"])[0];
        assert_eq!(first["cause"], *cause, "{kind}: {told:#}");
        assert!(first["share"].as_f64() > Some(0.5), "{kind}: {told:#}");
        assert!(shown.contains(&format!("why: {name}: ")), "{shown}");
    }
    // The runs that were measured counted nothing.
    let counted = list(&result["runs"])
        .iter()
        .any(|run| run["heap"].is_object());
    assert!(!counted, "{shown}");
    let path = &told(&result, "conf.kind=leak")["allocated_by"];
    assert_eq!(list(&path["frames"]).last(), Some(&Value::from("leak")));
    Outcome::Pass
}

fn without_progress_only_what_is_there_is_told(env: &TestEnv) -> Outcome {
    let folder = service(env, "state").set("load.progress", "{ regex = '^(nothing)$' }");
    let leak = folder.text("service.setup", "mkfifo ask answer; echo leak >kind");
    let options = ["--heap", "--quiet", "--rounds", "2"];
    let (output, result) = leak.compare(&options);
    expect_code(&output, 0);
    let known = told(&result, "baseline");
    let why = known["not_judged"].as_str().unwrap_or_default();
    assert_eq!(why, "the count of operations did not rise");
    assert_eq!(known["cause"], "live");
    let terms = known["terms"].as_object().expect("a table").values();
    assert_eq!(
        terms.filter_map(Value::as_u64).max(),
        known["terms"]["live"].as_u64()
    );
    assert!(printed(&output).contains("growth was not judged"));
    Outcome::Pass
}

fn a_service_that_is_kept_has_no_start_of_its_own(env: &TestEnv) -> Outcome {
    let folder = RecipeFolder::service(env, "kept").set("service.keep", "true");
    let message = folder.refused(&["--heap"]);
    assert!(message.contains("--heap tells why"), "{message}");
    Outcome::Pass
}
