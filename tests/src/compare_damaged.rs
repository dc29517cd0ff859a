//! `refit report` and files that are not results, or are so no longer.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::compare_files::{make, report};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, refit_path};

pub const TESTS: &[Test] = &[
    test!(what_is_no_result_is_refused_by_name),
    test!(a_damaged_result_is_drawn_or_refused).once(),
    test!(what_is_longer_than_any_result_is_refused_unread),
];

fn what_is_no_result_is_refused_by_name(env: &TestEnv) -> Outcome {
    make(env, &[]);
    let good = fs::read_to_string(env.path("result.json")).expect("it was written");
    let change = |name: &str, value: Value| {
        let mut result: Value = serde_json::from_str(&good).expect("it is JSON");
        result[name] = value;
        result.to_string()
    };
    env.file("newer.json", &change("schema", 99.into()));
    env.file("nameless.json", &change("schema", Value::Null));
    env.file("kind.json", &change("kind", "garden".into()));
    env.file("runs.json", &change("runs", "none".into()));
    env.file("half.json", &good[..good.len() / 2]);
    env.file("list.json", "[1, 2]");
    env.file("empty.json", "");
    for (name, sentence) in [
        ("newer", "has schema 99, and this refit knows 1"),
        ("nameless", "it has no `schema`"),
        ("kind", "holds a `garden`, not a result"),
        ("runs", "is damaged"),
        ("half", "is not JSON"),
        ("list", "is not a result of refit"),
        ("empty", "is not JSON"),
        ("missing", "cannot read"),
    ] {
        let file = format!("{name}.json");
        let output = env.refit(&["report", &file]);
        expect_code(&output, 2);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(
            messages.contains(&file) && messages.contains(sentence),
            "{name}: {messages}"
        );
        assert!(
            output.stdout.is_empty() && messages.starts_with("refit: "),
            "{name}: {messages}"
        );
    }
    expect_code(&env.refit(&["report"]), 2);
    expect_code(
        &env.refit(&["report", "result.json", "result.json", "--csv", "a.csv"]),
        2,
    );
    Outcome::Pass
}

/// A file of a length that no memory has, and one that never ends.
fn what_is_longer_than_any_result_is_refused_unread(env: &TestEnv) -> Outcome {
    env.require_command("prlimit");
    let long = env.path("long.json");
    let file = fs::File::create(&long).expect("the directory is ours");
    file.set_len(8 << 30).expect("a file with a hole");
    for path in [&*long, "/dev/zero"] {
        let log = env.subdir(&path.replace('/', "_"));
        symlink(path, format!("{log}/tune.json")).expect("the directory is ours");
        for words in [
            &["report", path][..],
            &["pool", path],
            &["plan", "--from", path, "x.service"],
            &["tune", "--resume", &log],
        ] {
            refused_as_long(env, words, "256 MiB");
        }
        let object = ["export", "kubernetes", "apply", "--of", path, "sync=off"];
        refused_as_long(env, &object, "16 MiB");
    }
    Outcome::Pass
}

fn refused_as_long(env: &TestEnv, words: &[&str], limit: &str) {
    let limited = ["prlimit", "--as=900000000", &refit_path()];
    let output = env.run(&[&limited, words].concat());
    expect_message(&output, 2, &format!("it is longer than {limit}"));
}

/// Numbers anywhere in a result may be wrong: who reads files does not fall over them.
fn a_damaged_result_is_drawn_or_refused(env: &TestEnv) -> Outcome {
    make(env, &["--remeasure"]);
    let text = fs::read_to_string(env.path("result.json")).expect("it was written");
    let good: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut places = Vec::new();
    numbers(&good, "", &mut places);
    // Runs are most of a result, and the least of its meaning.
    let (runs, rest): (Vec<&String>, Vec<&String>) =
        places.iter().partition(|place| place.contains("/runs/"));
    let bad = [
        json!(0),
        json!(7),
        json!(-1),
        json!(1e308),
        json!(-0.999_999),
        json!(1e-308),
        json!(u64::MAX),
        Value::Null,
    ];
    let mut random = random(0x5eed);
    let mut drawn = 0;
    for _ in 0..200 {
        let mut result = good.clone();
        for _ in 0..=random(3) {
            let among = if random(4) == 0 { &runs } else { &rest };
            let place = result.pointer_mut(among[random(among.len())]);
            *place.expect("no place was taken away") = bad[random(bad.len())].clone();
        }
        env.file("damaged.json", &result.to_string());
        let files = [
            "--csv", "d.csv", "--md", "d.md", "--html", "d.html", "--svg", "d.svg",
        ];
        for args in [&[][..], &files] {
            let output = report(env, &[&["damaged.json"], args].concat());
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 2)),
                "{}\n{result}",
                described(&output)
            );
            drawn += u32::from(code == Some(0));
        }
    }
    assert!(drawn > 100, "most numbers can be drawn: {drawn}");
    Outcome::Pass
}

/// Where the numbers are.
pub fn numbers(value: &Value, at: &str, places: &mut Vec<String>) {
    match value {
        Value::Number(_) => places.push(at.to_owned()),
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                numbers(value, &format!("{at}/{index}"), places);
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                numbers(value, &format!("{at}/{}", name.replace('/', "~1")), places);
            }
        }
        _ => {}
    }
}

/// Numbers below a bound, the same for the same seed.
pub fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 33).expect("31 bits fit") % below
    }
}
