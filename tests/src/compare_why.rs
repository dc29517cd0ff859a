//! `refit compare --heap RECIPE`: why the memory of a service is what it is, of programs whose memory grows for one
//! known reason (tests/programs/memory_kinds.c).

use serde_json::Value;

use crate::compared::{list, printed, variant};
use crate::memory_growth::fresh_seed;
use crate::recipe_folder::RecipeFolder;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(each_variant_is_told_what_grows).limit_seconds(300),
    test!(twenty_fresh_seeds_are_told_apart)
        .limit_seconds(3600)
        .when_named(),
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
        .text("service.setup", "mkfifo ask answer; echo none 33 >kind")
        .text(
            "service.start",
            &format!("echo $$ >pid; exec {program} $(cat kind) <>ask 1<>answer 2>log"),
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

/// With a variant of the kind and the seed for each; their names.
fn with_kinds<'a>(
    mut folder: RecipeFolder<'a>,
    kinds: &[(&'static str, u64)],
) -> (RecipeFolder<'a>, Vec<String>) {
    for (kind, seed) in kinds {
        let to = format!("to = '{kind} {seed}'");
        let edit = format!("{{ class = 'safe', file = 'kind', from = 'none 33', {to} }}");
        folder = folder.set(&format!("conf.kind.{kind}-{seed}"), &edit);
    }
    folder = folder.set("conf.kind.about", "'what grows'");
    let settings: Vec<String> = kinds
        .iter()
        .map(|(kind, seed)| format!("conf.kind={kind}-{seed}"))
        .collect();
    let words: Vec<&str> = settings.iter().map(String::as_str).collect();
    (folder.variants(&words), settings)
}

/// As the same server that leaks, wastes within its blocks, leaves holes or keeps what is free.
fn twenty_fresh_seeds_are_told_apart(env: &TestEnv) -> Outcome {
    let first = fresh_seed();
    let mut faults = Vec::new();
    for (kind, cause) in &KINDS[..4] {
        let seeds: Vec<_> = (first..first + 20).map(|seed| (*kind, seed)).collect();
        let (folder, settings) = with_kinds(service(env, kind), &seeds);
        let (output, result) = folder.compare(&["--heap", "--quiet", "--rounds", "2"]);
        expect_code(&output, 0);
        let causes = settings
            .iter()
            .map(|name| (name, told(&result, name)["cause"].clone()));
        let wrong: Vec<String> = causes
            .filter(|(_, told)| told != cause)
            .map(|(name, told)| format!("{name}: {told}"))
            .collect();
        println!("counted: {kind}: {} of 20", 20 - wrong.len());
        faults.extend(wrong);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Outcome::Pass
}

fn each_variant_is_told_what_grows(env: &TestEnv) -> Outcome {
    let (folder, settings) = with_kinds(service(env, "kinds"), &KINDS.map(|(kind, _)| (kind, 33)));
    let (output, result) = folder.compare(&["--heap", "--quiet", "--rounds", "2"]);
    expect_code(&output, 0);
    let shown = printed(&output);
    let baseline = told(&result, "baseline");
    assert_eq!(baseline["growth"], Value::Array(Vec::new()), "{baseline:#}");
    for ((kind, cause), name) in KINDS.iter().zip(&settings) {
        let told = told(&result, name);
        assert!(told["growth"].is_array(), "{kind}: {told:#}");
        assert_eq!(told["cause"], *cause, "{kind}: {told:#}");
        let first = list(&told["growth"]).first();
        let first = first.unwrap_or_else(|| panic!("{kind}: {told:#}"));
        assert_eq!(first["cause"], *cause, "{kind}: {told:#}");
        assert!(first["share"].as_f64() > Some(0.5), "{kind}: {told:#}");
        assert!(shown.contains(&format!("why: {name}: ")), "{shown}");
    }
    // The runs that were measured counted nothing.
    let counted = list(&result["runs"])
        .iter()
        .any(|run| run["heap"].is_object());
    assert!(!counted, "{shown}");
    let path = &told(&result, "conf.kind=leak-33")["allocated_by"];
    let innermost = list(&path["frames"]).last();
    assert_eq!(
        innermost.map(|frame| &frame["function"]),
        Some(&Value::from("leak"))
    );
    Outcome::Pass
}

fn without_progress_only_what_is_there_is_told(env: &TestEnv) -> Outcome {
    let folder = service(env, "state").set("load.progress", "{ regex = '^(nothing)$' }");
    let leak = folder.text("service.setup", "mkfifo ask answer; echo leak 33 >kind");
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
