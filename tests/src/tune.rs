//! `refit tune`: what it tries, what it finds, and what it leaves in its log.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::apply::{tree, words as plan};
use crate::compare_prove::quick;
use crate::compared::{list, messages, printed};
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid;
use crate::test_env::{
    TestEnv, described, expect_code, expect_printed, expect_refused, wait_until,
};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(what_gains_is_found_and_every_step_is_in_the_log).limit_seconds(240),
    test!(what_is_not_accepted_does_not_run).limit_seconds(120),
    test!(a_wait_for_the_disk_is_found_where_its_cure_is_accepted).limit_seconds(240),
    test!(where_nothing_is_worth_trying_it_tells_so).limit_seconds(60),
    test!(a_command_has_a_fresh_copy_for_each_run).limit_seconds(240),
    test!(what_gains_alone_is_tried_together).limit_seconds(300),
    test!(an_answer_that_risks_data_is_cut).limit_seconds(300),
    test!(its_answer_can_be_planned).limit_seconds(120),
    test!(interrupted_it_goes_on_from_its_last_step).limit_seconds(240),
    test!(what_cannot_be_tuned_is_refused_before_anything_runs),
];

/// A load that waits: for as long as its configuration has it, whatever else runs on the machine.
fn pause(env: &TestEnv) -> String {
    let folder = env.subdir("pause");
    let file = r#"name = "pause"
question.en = "How long is a pause?"
[service]
setup = "echo pause=0.2 >pause.conf"
[load]
command = '. ./pause.conf && sleep "$pause"'
operations = 1
unit = "pause"
[check]
command = "true"
[conf.pause]
about = "its length"
[conf.pause.short]
class = "safe"
file = "pause.conf"
from = "pause=0.2"
to = "pause=0.05"
[conf.pause.long]
class = "safe"
file = "pause.conf"
from = "pause=0.2"
to = "pause=0.4"
[conf.pause.none]
class = "loses-on-crash"
file = "pause.conf"
from = "pause=0.2"
to = "pause=0"
[[variant]]
settings = "conf.pause=short"
why = "it waits less"
[[variant]]
settings = "conf.pause=long"
why = "it waits more"
[[variant]]
settings = "conf.pause=none"
why = "it does not wait"
"#;
    fs::write(format!("{folder}/recipe.toml"), file).expect("writable");
    folder
}

/// A log with an fsync after each line; each run leaves a line in `runs`.
fn log(env: &TestEnv) -> String {
    let folder = env.subdir("lines");
    let (program, runs) = (env.program("append_log"), env.path("runs"));
    let file = format!(
        r#"name = "lines"
question.en = "How long does a line take?"
[load]
command = "echo run >>{runs}; exec {program} log 400 >numbers"
operations = 400
unit = "line"
[check]
command = "test $(wc -l <log) = 400"
[[variant]]
settings = "sync=off"
why = "nothing waits"
"#
    );
    fs::write(format!("{folder}/recipe.toml"), file).expect("writable");
    folder
}

fn record(env: &TestEnv, log: &str) -> Value {
    let text =
        fs::read_to_string(env.path(&format!("{log}/tune.json"))).expect("there is a record");
    let record: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(record["kind"], "tune");
    record
}

/// The comparisons of a log are what `refit compare` writes.
fn expect_comparisons(env: &TestEnv, log: &str) {
    for step in list(&record(env, log)["steps"]) {
        let file = step["file"].as_str().expect("a name");
        let text =
            fs::read_to_string(env.path(&format!("{log}/{file}"))).expect("there is a result");
        expect_valid(&serde_json::from_str(&text).expect("it is JSON"));
    }
}

fn answer<'a>(record: &'a Value, accepted: &str) -> &'a Value {
    let mut answers = list(&record["answers"]).iter();
    let answer = answers.find(|answer| answer["accepted"]["loss"] == accepted);
    answer.expect("an answer for each class")
}

fn what_gains_is_found_and_every_step_is_in_the_log(env: &TestEnv) -> Outcome {
    let folder = pause(env);
    let words = [
        "tune",
        &folder,
        "--yes",
        "--budget",
        "120s",
        "--log",
        "log",
        "--accept",
        "loses-on-crash",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    let text = printed(&output);
    let record = record(env, "log");
    let safe = answer(&record, "safe");
    assert_eq!(
        safe["variant"],
        "conf.pause=short",
        "{}",
        described(&output)
    );
    assert_eq!(safe["effect"]["verdict"], "faster");
    assert_eq!(record["interrupted"], false);
    let steps = list(&record["steps"]);
    let kinds: Vec<_> = steps.iter().map(|step| step["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("screen"), Some("confirm")], "{text}");
    // The longer one gains nothing, and the third one's class has no reason: nothing syncs.
    let screened = list(&steps[0]["outcomes"]);
    assert_eq!(screened[1]["variant"], "conf.pause=long", "{text}");
    assert!(
        screened[1]["dropped"].is_string() && screened.len() == 2,
        "{text}"
    );
    assert!(
        text.contains("conf.pause=none, sync=off: 0 sync calls waited 0 % of the time"),
        "{text}"
    );
    for words in ["faster", "refit recipes show", "refit report --history log"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    expect_comparisons(env, "log");
    let history = printed(&env.refit(&["report", "--history", "log"]));
    for words in [
        "conf.pause=short",
        "conf.pause=long",
        "1-screen.json",
        "2-confirm.json",
    ] {
        assert!(history.contains(words), "{words}: {history}");
    }
    Outcome::Pass
}

fn what_is_not_accepted_does_not_run(env: &TestEnv) -> Outcome {
    let folder = log(env);
    let output = env.refit(&["tune", &folder, "--yes", "--log", "log"]);
    expect_code(&output, 0);
    let text = printed(&output);
    let runs = fs::read_to_string(env.path("runs")).expect("it ran");
    assert_eq!(runs.lines().count(), 1, "only the observed run: {text}");
    for words in [
        "safe           nothing",
        "sync=off: not accepted: loses-on-crash",
        "400 sync calls waited",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let next = format!("refit tune --accept loses-on-crash {folder}");
    assert!(text.contains(&next), "{next}: {text}");
    Outcome::Pass
}

fn a_wait_for_the_disk_is_found_where_its_cure_is_accepted(env: &TestEnv) -> Outcome {
    let folder = log(env);
    let words = [
        "tune",
        &folder,
        "--yes",
        "--log",
        "log",
        "--budget",
        "120s",
        "--accept",
        "loses-on-crash",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    let text = described(&output);
    let record = record(env, "log");
    assert_eq!(answer(&record, "safe")["variant"], Value::Null, "{text}");
    let risky = answer(&record, "loses-on-crash");
    assert_eq!(risky["variant"], "sync=off", "{text}");
    assert_eq!(risky["effect"]["gain"], true, "{text}");
    assert!(
        text.contains("refit plan --from log/tune.json SERVICE"),
        "{text}"
    );
    if env.as_root() {
        assert!(text.contains("the kernel saw 4"), "{text}");
    }
    Outcome::Pass
}

fn where_nothing_is_worth_trying_it_tells_so(env: &TestEnv) -> Outcome {
    let words = [
        "tune",
        "--accept",
        "loses-on-crash",
        "--",
        "/bin/sleep",
        "0.1",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    let text = printed(&output);
    for words in [
        "safe           nothing: nothing that the run showed",
        "loses-on-crash nothing: nothing that the run showed",
        "sync=off: 0 sync calls waited 0 % of the time",
        // Its name is of the command.
        "refit report --history tune-sleep-1",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(list(&record(env, "tune-sleep-1")["steps"]).is_empty());
    Outcome::Pass
}

fn a_command_has_a_fresh_copy_for_each_run(env: &TestEnv) -> Outcome {
    let (program, copied) = (env.program("append_log"), env.subdir("copied"));
    // In a directory that is not fresh it would find the lines of the run before.
    let check = "test $(wc -l <log) = 300";
    let options = [
        "--fresh-copy",
        &copied,
        "--check",
        check,
        "--accept",
        "loses-on-crash",
    ];
    let words = [
        "--budget", "120s", "--log", "log", "--", &program, "log", "300",
    ];
    let output = env.refit(&[&["tune"], &options[..], &words].concat());
    expect_code(&output, 0);
    let text = described(&output);
    let record = record(env, "log");
    assert_eq!(
        answer(&record, "loses-on-crash")["variant"],
        "sync=off",
        "{text}"
    );
    assert_eq!(answer(&record, "safe")["variant"], Value::Null, "{text}");
    let next = format!("refit run sync=off -- {program} log 300");
    assert!(text.contains(&next), "{next}: {text}");
    Outcome::Pass
}

/// Two waits, each with a cure of its own: neither takes the other's place.
fn what_gains_alone_is_tried_together(env: &TestEnv) -> Outcome {
    let folder = pause(env);
    let recipe = format!("{folder}/recipe.toml");
    let text = fs::read_to_string(&recipe).expect("written");
    let text = text
        .replace(
            "echo pause=0.2 >pause.conf",
            "echo pause=0.2 >pause.conf; echo rest=0.15 >rest.conf",
        )
        .replace(
            ". ./pause.conf &&",
            ". ./pause.conf && . ./rest.conf && sleep $rest &&",
        );
    let more = r#"
[conf.rest]
about = "of a second pause"
[conf.rest.short]
class = "safe"
file = "rest.conf"
from = "rest=0.15"
to = "rest=0.02"
[[variant]]
settings = "conf.rest=short"
why = "it waits less"
"#;
    fs::write(&recipe, text + more).expect("writable");
    let output = env.refit(&["tune", &folder, "--yes", "--budget", "200s", "--log", "log"]);
    expect_code(&output, 0);
    let text = described(&output);
    let record = record(env, "log");
    let both = "conf.pause=short+conf.rest=short";
    assert_eq!(answer(&record, "safe")["variant"], both, "{text}");
    let kinds: Vec<_> = list(&record["steps"])
        .iter()
        .map(|step| step["kind"].as_str())
        .collect();
    assert_eq!(
        &kinds[kinds.len() - 2..],
        [Some("joint"), Some("confirm")],
        "{text}"
    );
    Outcome::Pass
}

fn an_answer_that_risks_data_is_cut(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let folder = quick(env);
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
    Outcome::Pass
}

/// A load that prints a cost, the same on a busy machine, which is half with HALF.
fn its_answer_can_be_planned(env: &TestEnv) -> Outcome {
    let (folder, root) = (env.subdir("costs"), tree(env, "tree"));
    let file = r#"name = "costs"
question.en = "What does it cost?"
applies-to = "a"
main = "cost"
[load]
command = 'test -n "$HALF" && echo cost=1 || echo cost=2'
operations = 1
unit = "start"
[load.metrics.cost]
regex = "cost=([0-9])"
unit = "ms"
[check]
command = "true"
[[variant]]
settings = "env.HALF=1"
why = "half of it"
[[variant]]
settings = "env.OTHER=1"
why = "nothing"
"#;
    fs::write(format!("{folder}/recipe.toml"), file).expect("writable");
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
    let folder = pause(env);
    let words = ["tune", &folder, "--yes", "--budget", "150s", "--log", "log"];
    let mut refit = env.refit_command(&words);
    let child = refit
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("refit starts");
    let second = env.path("log/2-confirm.json");
    wait_until("a round pair of the second step", || {
        fs::exists(&second).unwrap_or(false)
    });
    sys::send_signal(
        i32::try_from(child.id()).expect("process ids are ints"),
        libc::SIGINT,
    );
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
        (&Value::Bool(true), 1)
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
    assert_eq!(list(&record["steps"]).len(), 2);
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

fn what_cannot_be_tuned_is_refused_before_anything_runs(env: &TestEnv) -> Outcome {
    let folder = log(env);
    env.subdir("full");
    env.file("full/a", "");
    let none = ["tune"];
    let setting = ["tune", "sync=off", "--", "true"];
    let both = ["tune", &folder, "--yes", "--", "true"];
    let of_commands = ["tune", &folder, "--yes", "--check", "true"];
    let full = ["tune", &folder, "--yes", "--log", "full"];
    let exact = ["tune", "leap-second"];
    let no_log = ["tune", "--resume", "nowhere"];
    for (words, texts) in [
        (&none[..], &["nothing to tune", "refit tune -- COMMAND"][..]),
        (
            &setting,
            &[
                "`sync=off` is a setting",
                "refit compare sync=off -- COMMAND",
            ],
        ),
        (&both, &["a recipe has its own load", "-- true"]),
        (&of_commands, &["--check is for commands"]),
        (
            &["tune", "--prove", "--", "true"],
            &["--prove needs a recipe", "refit crash --check"],
        ),
        (
            &["tune", &folder, "--yes", "--prove"],
            &["has no [promise]"],
        ),
        (&full, &["--log full: the directory is not empty"]),
        (
            &exact,
            &["gives exact answers", "refit compare leap-second"],
        ),
        (&no_log, &["cannot read nowhere/tune.json", "--resume"]),
    ] {
        expect_refused(env, words, texts);
    }
    assert!(!fs::exists(env.path("runs")).unwrap_or(true));
    Outcome::Pass
}
