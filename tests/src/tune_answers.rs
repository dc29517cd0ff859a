//! What `refit tune` answers: proven, planned, and found after an interruption.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::apply::{tree, words as plan};
use crate::apply_evidence::costs;
use crate::compared::{list, messages, printed};
use crate::crash::require_lab;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, expect_printed, wait_within};
use crate::tune::{answer, expect_comparisons, log, pause, record};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(an_answer_that_risks_data_is_cut).limit_seconds(300),
    test!(its_answer_can_be_planned).limit_seconds(120),
    test!(interrupted_it_goes_on_from_its_last_step).limit_seconds(300),
];

fn an_answer_that_risks_data_is_cut(env: &TestEnv) -> Outcome {
    if env.as_root() {
        require_lab(env);
    }
    let folder = log(env);
    let words = [
        "tune",
        &folder,
        "--yes",
        "--accept",
        "loses-on-crash",
        "--log",
        "log",
    ];
    let prove = ["--prove", "--cuts", "24", "--budget", "240s"];
    let output = env.refit(&[&words[..], &prove].concat());
    let text = described(&output);
    let record = record(env, "log");
    let risky = answer(&record, "loses-on-crash");
    assert_eq!(risky["variant"], "sync=off", "{text}");
    if !env.as_root() {
        // What was measured is printed all the same.
        expect_code(&output, 2);
        assert!(
            text.contains("not made: simulated power cuts cannot be made here"),
            "{text}"
        );
        return Outcome::Pass;
    }
    expect_code(&output, 0);
    assert!(
        risky["proof"]
            .as_str()
            .is_some_and(|proof| proof.contains("lost ")),
        "{text}"
    );
    assert!(
        text.contains("; cuts: lost ") && text.contains("refit report log/proof.json"),
        "{text}"
    );
    let report = printed(&env.refit(&["report", "log/proof.json"]));
    assert!(report.contains("`sync=off` lost "), "{report}");
    // Gain and loss are shown: it can be accepted. How much noise this machine has now is another matter.
    let file = list(&record["steps"]).last().expect("a step")["file"].as_str();
    let file = env.path(&format!("log/{}", file.expect("its name")));
    let text = fs::read_to_string(&file).expect("the confirmation");
    let mut confirmation: Value = serde_json::from_str(&text).expect("it is JSON");
    for effect in confirmation["effects"].as_array_mut().expect("effects") {
        if effect["verdict"].is_null() {
            effect["interval"] = json!([-0.001, 0.001]);
            effect["early"] = json!(false);
        }
    }
    fs::write(&file, confirmation.to_string()).expect("the directory is ours");
    let root = tree(env, "tree");
    let apply = [
        "--yes",
        "--from",
        "log/tune.json",
        "a",
        "--accept=loses-on-crash",
    ];
    expect_printed(
        &env.refit(&plan("apply", &root, &apply)),
        0,
        "a.service: applied in the tree",
    );
    let status = env.refit(&plan("status", &root, &[]));
    expect_printed(&status, 0, "accepted       loses-on-crash\n");
    Outcome::Pass
}

fn its_answer_can_be_planned(env: &TestEnv) -> Outcome {
    let (folder, root) = (costs(env), tree(env, "tree"));
    let words = [
        "tune", &folder, "--yes", "--quiet", "--budget", "60s", "--log", "log",
    ];
    let output = env.refit(&[&words[..], &["--accept", "changes-behaviour"]].concat());
    expect_code(&output, 0);
    let text = described(&output);
    assert!(text.contains("refit plan --from log/tune.json\n"), "{text}");
    assert_eq!(
        list(&record(env, "log")["answers"])[1]["variant"],
        "env.HALF=1",
        "{text}"
    );
    let planned = env.refit(&plan("plan", &root, &["--from", "log/tune.json"]));
    expect_printed(&planned, 0, "+Environment=\"HALF=1\"\n");
    // The same again, from the file.
    let again = env.refit(&["report", "log/tune.json"]);
    assert_eq!(printed(&again), printed(&output));
    Outcome::Pass
}

fn interrupted_it_goes_on_from_its_last_step(env: &TestEnv) -> Outcome {
    const BUDGET: Duration = Duration::from_secs(150);
    let folder = pause(env);
    let budget = format!("{}s", BUDGET.as_secs());
    let words = [
        "tune", &folder, "--yes", "--budget", &budget, "--log", "log",
    ];
    let mut refit = env.refit_command(&words);
    let mut child = refit
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("refit starts");
    // On a busy machine there is more than one screen before it.
    let screens = || {
        (1..9)
            .find(|n| fs::exists(env.path(&format!("log/{}-confirm.json", n + 1))).unwrap_or(false))
    };
    let mut ended = false;
    wait_within(BUDGET, "a round pair of the confirmation", || {
        ended = child.try_wait().expect("it is our child").is_some();
        (ended || screens().is_some()).then_some(())
    });
    if ended {
        let output = child.wait_with_output().expect("it is our child");
        panic!("it has ended without: {}", described(&output));
    }
    sys::send_signal(
        i32::try_from(child.id()).expect("process ids are ints"),
        libc::SIGINT,
    );
    let screens = screens().expect("waited for");
    let output = child.wait_with_output().expect("it is our child");
    expect_code(&output, 130);
    assert!(
        printed(&output).contains("refit tune --resume log"),
        "{}",
        described(&output)
    );
    let first = fs::read(env.path("log/1-screen.json")).expect("a whole step");
    let stopped = record(env, "log");
    assert_eq!(
        (&stopped["interrupted"], list(&stopped["steps"]).len()),
        (&Value::Bool(true), screens)
    );
    assert!(list(&stopped["answers"]).is_empty());
    expect_comparisons(env, "log");
    let output = env.refit(&["tune", "--resume", "log", "--budget", "60s"]);
    expect_code(&output, 0);
    let record = record(env, "log");
    assert_eq!(
        answer(&record, "safe")["variant"],
        "conf.pause=short",
        "{}",
        described(&output)
    );
    assert_eq!(list(&record["steps"]).len(), screens + 1);
    assert!(
        !messages(&output).contains("observing"),
        "{}",
        described(&output)
    );
    assert!(fs::read(env.path("log/1-screen.json")).expect("still there") == first);
    // At its end there is nothing to go on with.
    let output = env.refit(&["tune", "--resume", "log"]);
    expect_code(&output, 0);
    assert!(
        messages(&output).contains("this tuning is at its end"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}
