//! `refit tune`: what it tries, what it finds, and what it leaves in its log.

use std::fs;

use serde_json::{Value, json};

use crate::compared::{list, printed};
use crate::runner::{Outcome, Test};
use crate::schema::{expect_valid, expect_valid_by, refuses_more_by};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_refused};

pub const TESTS: &[Test] = &[
    test!(what_gains_is_found_and_every_step_is_in_the_log).limit_seconds(240),
    test!(what_is_not_accepted_does_not_run).limit_seconds(120),
    test!(a_wait_for_the_disk_is_found_where_its_cure_is_accepted).limit_seconds(240),
    test!(where_nothing_is_worth_trying_it_tells_so).limit_seconds(60),
    test!(a_command_has_a_fresh_copy_for_each_run).limit_seconds(240),
    test!(what_gains_alone_is_tried_together).limit_seconds(300),
    test!(what_cannot_be_tuned_is_refused_before_anything_runs),
];

/// A load that waits: for as long as its configuration has it, whatever else runs on the machine.
pub fn pause(env: &TestEnv) -> String {
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

/// A log with an fsync after each line, which takes most of its time on any disk; each run leaves a line in `runs`.
pub fn log(env: &TestEnv) -> String {
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
[promise]
about = "a log: write, fsync"
acknowledged = "a line is acknowledged after its fsync"
load = "exec {program} log 1000000 2000"
ack = "fd:1"
check = "log:log"
length = "1s"
[[variant]]
settings = "sync=off"
why = "nothing waits"
"#
    );
    fs::write(format!("{folder}/recipe.toml"), file).expect("writable");
    folder
}

pub fn record(env: &TestEnv, log: &str) -> Value {
    let text =
        fs::read_to_string(env.path(&format!("{log}/tune.json"))).expect("there is a record");
    let record: Value = serde_json::from_str(&text).expect("it is JSON");
    expect_valid_by("tune.schema.json", &record);
    refuses_more_by("tune.schema.json", &record, "/accepted");
    record
}

/// The comparisons of a log are what `refit compare` writes.
pub fn expect_comparisons(env: &TestEnv, log: &str) {
    for step in list(&record(env, log)["steps"]) {
        let file = step["file"].as_str().expect("a name");
        let text =
            fs::read_to_string(env.path(&format!("{log}/{file}"))).expect("there is a result");
        expect_valid(&serde_json::from_str(&text).expect("it is JSON"));
    }
}

pub fn answer<'a>(record: &'a Value, accepted: &str) -> &'a Value {
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
    assert_eq!(
        record["options"],
        json!(["--accept", "loses-on-crash", "--budget", "120s"])
    );
    let steps = list(&record["steps"]);
    // On a busy machine it takes more than one screen.
    let (last, screens) = steps.split_last().expect("there are steps");
    assert_eq!(last["kind"], "confirm", "{text}");
    assert!(
        !screens.is_empty() && screens.iter().all(|step| step["kind"] == "screen"),
        "{text}"
    );
    // The longer one gains nothing, and the third one's class has no reason: nothing syncs.
    for step in screens {
        let screened = list(&step["outcomes"]);
        assert_eq!(screened[1]["variant"], "conf.pause=long", "{text}");
        let is_last = step["file"] == screens[screens.len() - 1]["file"];
        assert!(
            screened[1]["dropped"].is_string() == is_last && screened.len() == 2,
            "{text}"
        );
    }
    let confirmed = format!("{}-confirm.json", steps.len());
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
        &confirmed,
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
    // The better one of the two is first, which is not certain on a busy machine.
    let both = [
        "conf.pause=short+conf.rest=short",
        "conf.rest=short+conf.pause=short",
    ];
    let variant = answer(&record, "safe")["variant"].as_str();
    assert!(variant.is_some_and(|found| both.contains(&found)), "{text}");
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
            &["tune", &pause(env), "--yes", "--prove"],
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
