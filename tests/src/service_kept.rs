//! `service.keep`: one start for all runs, and what can be changed while it runs.

use std::fs;

use crate::compared::{effect, list, number, printed, runs_of, variant};
use crate::recipe_folder::RecipeFolder;
use crate::remains::starts;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(one_start_serves_all_runs),
    test!(what_with_changes_is_done_once),
    test!(a_run_that_fails_costs_the_start),
    test!(what_needs_a_start_of_its_own_is_refused),
    test!(an_end_that_fails_is_told),
];

/// A load that waits where the variant's command has put a file. What commands do is noted.
fn kept<'a>(env: &'a TestEnv, name: &str) -> RecipeFolder<'a> {
    let program = env.program("line_service");
    let noted = env.path("noted");
    RecipeFolder::service(env, name)
        .starting_with("echo $$ >pid")
        .set("service.keep", "true")
        .text("load.warmup", ">lines")
        .text(
            "load.command",
            &format!(
                "if [ -e slow ]; then sleep 0.05; fi; {program} load $REFIT_PORT_LINE $REFIT_OPERATIONS"
            ),
        )
        .set(
            "conf.slow.yes",
            &format!(
                "{{ class = 'safe', command = 'touch slow; echo slow >>{noted}', inverse = 'rm slow; echo back >>{noted}' }}"
            ),
        )
        .set(
            "conf.other.yes",
            &format!(
                "{{ class = 'safe', command = 'echo other >>{noted}', inverse = 'echo other back >>{noted}' }}"
            ),
        )
        .variants(&["conf.slow=yes"])
}

fn count(env: &TestEnv, file: &str) -> usize {
    let text = fs::read_to_string(env.path(file)).expect("it was written");
    text.lines().count()
}

fn one_start_serves_all_runs(env: &TestEnv) -> Outcome {
    let folder = kept(env, "kept");
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    assert_eq!(count(env, &starts("kept")), 1);
    // Before each run of the variant, and back after it.
    let runs = runs_of(&result, "conf.slow=yes");
    assert_eq!(count(env, "noted"), 2 * runs.len());
    // Its command had done its work when the window began, and nobody else's.
    for run in &runs {
        assert!(number(&run["load"]["window_ns"]) > 50e6, "{run}");
    }
    for run in list(&result["runs"]) {
        assert!(run["failure"].is_null(), "{run}");
        let service = &run["load"]["service"];
        assert_eq!(service["ready_ns"], 0);
        // Of this window, although one process made the calls of all.
        let calls = list(&result["runs"])[0]["load"]["service"]["calls"].as_object();
        assert_eq!(calls.map(serde_json::Map::len), Some(1));
        let name = calls
            .and_then(|all| all.keys().next())
            .expect("one program");
        assert_eq!(service["calls"][name]["fsync"]["real"], 10, "{service}");
        assert_eq!(
            run["coverage"]["processes_reached"],
            run["coverage"]["processes_seen"]
        );
        assert!(
            number(&run["coverage"]["processes_reached"]) >= 1.0,
            "{run}"
        );
    }
    assert_eq!(result["recipe"]["keeps_service"], true);
    let no_ready = list(&result["effects"])
        .iter()
        .all(|e| e["metric"] != "ready");
    assert!(no_ready, "one start has no effect");
    let shown = printed(&output);
    assert!(
        shown.contains("one start of the service served all runs"),
        "{shown}"
    );
    assert!(shown.contains("the replicate"), "{shown}");
    let output = folder.check();
    expect_code(&output, 0);
    assert_eq!(
        printed(&output).lines().count(),
        2,
        "{}",
        described(&output)
    );
    folder.nothing_left();
    Outcome::Pass
}

fn what_with_changes_is_done_once(env: &TestEnv) -> Outcome {
    let with = ["--with", "conf.other=yes", "--with", "sync=off"];
    let (output, result) = kept(env, "kept").compare(&[&with[..], &["--rounds", "12"]].concat());
    expect_code(&output, 0);
    let noted = fs::read_to_string(env.path("noted")).expect("it was written");
    assert_eq!(
        noted.lines().filter(|line| *line == "other").count(),
        1,
        "{noted}"
    );
    assert!(!noted.contains("other back"), "{noted}");
    let last = runs_of(&result, "conf.slow=yes").pop().expect("it ran");
    let calls = last["load"]["service"]["calls"]
        .as_object()
        .expect("a table");
    let calls = calls.values().next().expect("one program");
    assert_eq!(calls["fsync"]["suppressed"], 10, "{last}");
    Outcome::Pass
}

fn a_run_that_fails_costs_the_start(env: &TestEnv) -> Outcome {
    let folder = kept(env, "kept")
        .set(
            "conf.broken.yes",
            "{ class = 'safe', command = 'echo no such thing >&2; exit 1', inverse = 'true' }",
        )
        .variants(&["conf.broken=yes", "conf.slow=yes"]);
    let (output, result) = folder.compare(&["--rounds", "14"]);
    expect_code(&output, 0);
    let out = variant(&result, "conf.broken=yes").1["disqualified"]["failed"].as_str();
    let out = out.expect("it is out");
    assert!(
        out.contains("conf.broken=yes failed, exit status: 1: no such thing"),
        "{out}"
    );
    // Each failure, and the run before which there was none.
    let failed = runs_of(&result, "conf.broken=yes").len();
    assert_eq!(count(env, &starts("kept")), 1 + failed);
    let effect = effect(&result, "conf.slow=yes", "rate");
    assert!(!effect["interval"].is_null(), "{effect}");
    // A server that is gone is reported with the last lines that it wrote.
    let dies = kept(env, "dies").set(
        "conf.slow.yes",
        "{ class = 'safe', command = 'kill $(cat pid)', inverse = 'true' }",
    );
    let output = dies.check();
    expect_code(&output, 1);
    let shown = printed(&output);
    assert!(
        shown.contains("FAILED  dies: conf.slow=yes: the service ended during "),
        "{shown}"
    );
    dies.nothing_left();
    Outcome::Pass
}

fn what_needs_a_start_of_its_own_is_refused(env: &TestEnv) -> Outcome {
    let folder = kept(env, "kept").variants(&["sync=off"]);
    let messages = folder.refused(&[]);
    assert!(
        messages.contains("sync=off: the recipe keeps one server for all runs")
            && messages.contains("--with"),
        "{messages}"
    );
    let messages = kept(env, "kept").refused(&["--bare"]);
    assert!(messages.contains("leave out --bare"), "{messages}");
    Outcome::Pass
}

fn an_end_that_fails_is_told(env: &TestEnv) -> Outcome {
    let folder = kept(env, "kept").text(
        "service.stop",
        "kill $(cat pid); echo left a lock >&2; exit 1",
    );
    let output = folder.check();
    expect_code(&output, 1);
    let shown = printed(&output);
    assert!(
        shown.contains(
            "FAILED  kept: the end of the service: service.stop failed, exit status: 1: left a lock"
        ),
        "{shown}"
    );
    folder.nothing_left();
    let (output, result) = folder.compare(&["--rounds", "12"]);
    expect_code(&output, 0);
    let warnings = result["warnings"].to_string();
    assert!(warnings.contains("left a lock"), "{warnings}");
    Outcome::Pass
}
