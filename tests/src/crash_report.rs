//! The report of `refit crash`: valid against the schema that is shipped, and drawn again from its file.

use std::fs;

use serde_json::{Value, json};

use crate::compare_damaged::{numbers, random};
use crate::compare_files::report;
use crate::crash::{crash, require_lab};
use crate::runner::{Outcome, Test};
use crate::schema::{expect_valid_by, refuses_more_by};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_crash_report_is_valid_and_drawn_again),
    test!(what_is_no_crash_report_is_refused_by_name),
    test!(a_damaged_crash_report_is_drawn_or_refused),
];

const SCHEMA: &str = "crash.schema.json";

/// A log that is synced, and a variant that does not; stored as `crash.json`.
fn make(env: &TestEnv, cuts: &str, options: &[&str]) -> Value {
    require_lab(env);
    let command = format!("{} $REFIT_MOUNT/a.log 300 300", env.program("append_log"));
    let words = ["--check", "log:a.log", "--ack", "fd:1", "--size", "64M"];
    let cuts = ["--cuts", cuts, "--prepare", "touch $REFIT_MOUNT/a.log"];
    let command = ["sync=off", "--", "sh", "-c", &command];
    crash(env, 0, &[&words[..], &cuts, options, &command].concat())
}

fn a_crash_report_is_valid_and_drawn_again(env: &TestEnv) -> Outcome {
    let html = env.path("first.html");
    let stored = make(env, "60", &["--html", &html]);
    expect_valid_by(SCHEMA, &stored);
    assert_eq!(stored["prepare"], "touch $REFIT_MOUNT/a.log");
    assert_eq!(stored["cuts"], 60);
    let mkfs = stored["mkfs"].as_str().expect("a text");
    assert!(mkfs.starts_with("mke2fs 1."), "{mkfs}");
    assert!(stored["machine"]["cores"].is_string(), "{stored:#}");
    for place in [
        "",
        "/filesystem",
        "/modes/0",
        "/modes/1/record",
        "/modes/1/run",
        "/modes/2/states/0",
        "/modes/2/states/0/loss",
    ] {
        refuses_more_by(SCHEMA, &stored, place);
    }

    let shown = report(env, &["crash.json"]);
    expect_code(&shown, 0);
    let text = String::from_utf8_lossy(&shown.stdout);
    for words in [
        "no loss found in",
        "loses, as its class allows",
        "refit crash open",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    let answer = "the program itself lost nothing in ";
    assert!(text.starts_with(answer), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{text}");
    expect_code(
        &report(env, &["crash.json", "--html", "again.html", "--md", "a.md"]),
        0,
    );
    let read = |path: &str| fs::read_to_string(env.path(path)).expect("it was written");
    assert_eq!(read("first.html"), read("again.html"));
    assert!(read("first.html").contains("loses, as its class allows"));
    assert!(read("a.md").contains("| `sync=off` |"), "{}", read("a.md"));
    assert!(read("a.md").starts_with(answer), "{}", read("a.md"));
    let paragraph = format!("<p class=\"answer\">{answer}");
    assert!(read("first.html").contains(&paragraph));
    Outcome::Pass
}

fn what_is_no_crash_report_is_refused_by_name(env: &TestEnv) -> Outcome {
    let good = make(env, "10", &[]);
    let change = |name: &str, value: Value| {
        let mut report = good.clone();
        report[name] = value;
        report.to_string()
    };
    let text = good.to_string();
    env.file("newer.json", &change("schema", 99.into()));
    env.file("kind.json", &change("kind", "compare".into()));
    env.file("modes.json", &change("modes", "none".into()));
    env.file("seed.json", &change("seed", json!(-1)));
    env.file("half.json", &text[..text.len() / 2]);
    env.file(
        "nan.json",
        &text.replacen("\"seed\":", "\"seed\":NaN,\"x\":", 1),
    );
    for (name, sentence) in [
        ("newer", "has schema 99, and this refit knows 1"),
        ("kind", "is damaged"),
        ("modes", "is damaged"),
        ("seed", "is damaged"),
        ("half", "is not JSON"),
        ("nan", "is not JSON"),
    ] {
        let file = format!("{name}.json");
        let output = report(env, &[&file]);
        expect_code(&output, 2);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(
            messages.starts_with("refit: ")
                && messages.contains(&file)
                && messages.contains(sentence),
            "{name}: {messages}"
        );
        assert!(output.stdout.is_empty());
    }
    let output = report(env, &["crash.json", "--csv", "a.csv"]);
    expect_code(&output, 2);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        messages.contains("--csv: a crash report is drawn as"),
        "{messages}"
    );
    Outcome::Pass
}

/// Numbers anywhere in a report may be wrong: who reads files does not fall over them.
fn a_damaged_crash_report_is_drawn_or_refused(env: &TestEnv) -> Outcome {
    let good = make(env, "10", &[]);
    let mut places = Vec::new();
    numbers(&good, "", &mut places);
    let bad = [
        json!(0),
        json!(7),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!(u64::MAX / 2),
        Value::Null,
    ];
    let mut random = random(0x5eed);
    let mut drawn = 0;
    for _ in 0..100 {
        let mut damaged = good.clone();
        for _ in 0..=random(3) {
            let place = damaged.pointer_mut(&places[random(places.len())]);
            *place.expect("no place was taken away") = bad[random(bad.len())].clone();
        }
        env.file("damaged.json", &damaged.to_string());
        for args in [&[][..], &["--md", "d.md", "--html", "d.html"]] {
            let output = report(env, &[&["damaged.json"], args].concat());
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 2)),
                "{}\n{damaged}",
                described(&output)
            );
            drawn += u32::from(code == Some(0));
        }
    }
    assert!(drawn > 50, "many numbers can be drawn: {drawn}");
    Outcome::Pass
}
