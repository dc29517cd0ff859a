//! The pages and pictures of results as a real browser lays them out, on a phone, a tablet and a desk, by day and by
//! night: tests/pages/geometry.js has what is wrong with one. A browser of 300 MB is not part of `make test`:
//! `make test-pages`.
//!
//! `REFIT_PAGES=DIR` keeps each page, and a picture of it at each width, to be looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::compared::{list, number, printed};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(what_is_wrong_with_a_page_is_found)
        .limit_seconds(LIMIT)
        .when_named(),
    test!(a_run).limit_seconds(LIMIT).when_named(),
    test!(a_comparison_of_a_command)
        .limit_seconds(LIMIT)
        .when_named(),
    test!(a_comparison_of_a_recipe)
        .limit_seconds(LIMIT)
        .when_named(),
    test!(gain_and_risk).limit_seconds(LIMIT).when_named(),
    test!(power_cuts).limit_seconds(LIMIT).when_named(),
    test!(a_watch).limit_seconds(LIMIT).when_named(),
    test!(a_pool).limit_seconds(LIMIT).when_named(),
    test!(a_tuning).limit_seconds(LIMIT).when_named(),
    test!(a_history).limit_seconds(LIMIT).when_named(),
];

/// A browser starts three times and more, on a machine that may be busy.
const LIMIT: u64 = 300;
/// A phone, a tablet, a desk.
const WIDTHS: [u32; 3] = [390, 800, 1280];
/// Blink's numbers for `prefers-color-scheme`.
const SCHEMES: [(&str, &str); 2] = [("dark", "0"), ("light", "1")];

/// Runs the browser on a page of the test's directory.
fn browser(env: &TestEnv, scheme: &str, options: &[&str], page: &str) -> Output {
    let profile = env.path("profile");
    let words = [
        "chromium",
        "--headless",
        "--no-sandbox", // as root; the pages are ours
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        &format!("--user-data-dir={profile}"),
        &format!("--blink-settings=preferredColorScheme={scheme}"),
    ];
    let output = env.run(&[&words[..], options, &[&format!("file://{page}")]].concat());
    expect_code(&output, 0);
    output
}

/// What is wrong with a page (or a picture) at these widths, by scheme and width.
fn problems(env: &TestEnv, page: &str, widths: &[u32]) -> Vec<String> {
    env.require_command("chromium");
    let script = fs::read_to_string(source_dir().join("tests/pages/geometry.js"))
        .expect("it is a part of the source");
    let frame = |width: &u32| {
        format!("<iframe src='{page}' width='{width}' height='900' style='border: 0'></iframe>")
    };
    let frames: String = widths.iter().map(frame).collect();
    let sheet = env.file(
        "sheet.html",
        &format!(
            "<!DOCTYPE html><meta charset='utf-8'>{frames}<pre></pre><script>{script}\n\
            onload = () => {{\n\
                const all = [...document.querySelectorAll('iframe')].map((frame) => problems(frame.contentWindow));\n\
                const plain = (c) => '\\\\u' + c.charCodeAt(0).toString(16).padStart(4, '0');\n\
                document.querySelector('pre').textContent = JSON.stringify(all).replace(/[<>&]/g, plain);\n\
            }};</script>"
        ),
    );
    let mut found = Vec::new();
    for (name, scheme) in SCHEMES {
        let document = printed(&browser(env, scheme, &["--dump-dom"], &sheet));
        let start = document.rfind("<pre>").expect("the sheet has one") + "<pre>".len();
        let length = document[start..].find("</pre>").expect("it ends");
        let all: Value = serde_json::from_str(&document[start..start + length])
            .unwrap_or_else(|error| panic!("{error} in {document}"));
        for (width, of) in widths.iter().zip(list(&all)) {
            assert!(number(&of["texts"]) > 0.0, "an empty page: {page}");
            let lines = list(&of["problems"]);
            let lines = lines.iter().map(|line| line.as_str().expect("a text"));
            found.extend(lines.map(|line| format!("{name}, {width} px: {line}")));
            if let Some(kept) = kept() {
                let picture = kept.join(format!("{}-{width}-{name}.png", file_name(page)));
                let size = format!("--window-size={width},{}", number(&of["height"]).max(200.0));
                let to = format!("--screenshot={}", picture.display());
                browser(env, scheme, &[&size, &to], page);
            }
        }
    }
    if let Some(kept) = kept() {
        fs::copy(page, kept.join(file_name(page))).expect("the directory can be written");
    }
    found
}

fn kept() -> Option<PathBuf> {
    std::env::var_os("REFIT_PAGES").map(PathBuf::from)
}

/// With its ending: a page and its picture have the same stem.
fn file_name(page: &str) -> String {
    let name = Path::new(page).file_name().expect("a page is a file");
    name.to_string_lossy().into_owned()
}

/// Draws a stored result as a page and as these pictures, all of which have to be right.
fn expect_right(env: &TestEnv, name: &str, stored: &str, pictures: &[&str]) {
    let page = env.path(&format!("{name}.html"));
    expect_code(&env.refit(&["report", stored, "--html", &page]), 0);
    let mut found = problems(env, &page, &WIDTHS);
    for form in pictures {
        let picture = env.path(&format!("{name}.{form}"));
        let option = format!("--{form}");
        expect_code(&env.refit(&["report", stored, &option, &picture]), 0);
        found.extend(problems(env, &picture, &WIDTHS[2..]));
    }
    expect_none(name, &found);
}

fn expect_none(name: &str, found: &[String]) {
    let shown = found.iter().take(40).map(|line| format!("\n  {line}"));
    let shown: String = shown.collect();
    assert!(found.is_empty(), "{name}: {} problems{shown}", found.len());
}

/// A result of the folder `bench`, as a file of the test's.
fn unpacked(env: &TestEnv, packed: &str) -> Value {
    env.require_command("python3");
    let source = source_dir();
    let reader = source.join("bench/packed.py");
    let packed = source.join("bench").join(packed);
    let words = [&reader, &packed].map(|path| path.to_str().expect("a path in UTF-8"));
    let output = env.run(&[&["python3"], &words[..]].concat());
    expect_code(&output, 0);
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn stored(env: &TestEnv, name: &str, result: &Value) -> String {
    env.file(name, &result.to_string())
}

/// What the other tests rest on: a page with each fault, and one without.
fn what_is_wrong_with_a_page_is_found(env: &TestEnv) -> Outcome {
    let page = |name: &str, body: &str| {
        let text = format!("<!DOCTYPE html><meta charset='utf-8'><body style='margin: 0'>{body}");
        problems(env, &env.file(name, &text), &WIDTHS[..1])
    };
    let right = page(
        "right.html",
        "<p>One line.</p><p>Another, of <code>/a/path</code>.</p>",
    );
    assert!(right.is_empty(), "{right:?}");
    for (name, body, problem) in [
        (
            "broad",
            "<p style='width: 500px'>text</p>",
            "the page is 500 px broad",
        ),
        (
            "cut",
            "<p style='margin-left: -40px'>text</p>",
            "cut at -40",
        ),
        (
            "scrolled",
            "<div style='overflow-x: auto'><p style='width: 500px'>text</p></div>",
            "scrolls sideways, 500 px in 390",
        ),
        (
            "over",
            "<p>one</p><p style='position: absolute; top: 16px; margin: 0'>two</p>",
            "overlap: ",
        ),
        (
            "broken",
            "<p style='width: 40px; overflow-wrap: anywhere'>inconclusive</p>",
            "broken: \"inconclusive\"",
        ),
        (
            "pale",
            "<p style='color: #999; background: #fff'>text</p>",
            "contrast 2.8",
        ),
    ] {
        let found = page(&format!("{name}.html"), body);
        let has = |scheme: &str| {
            let start = format!("{scheme}, 390 px: {problem}");
            found.iter().any(|line| line.starts_with(&start))
        };
        assert!(has("dark") && has("light"), "{name}: {found:?}");
    }
    Outcome::Pass
}

fn a_run(env: &TestEnv) -> Outcome {
    let result = env.path("run.json");
    let program = env.program("append_log");
    let script = format!("{program} log 50 >out; sync out");
    let words = ["run", "--json", &result, "--", "sh", "-c", &script];
    expect_code(&env.refit(&words), 0);
    expect_right(env, "run", &result, &[]);
    Outcome::Pass
}

fn a_comparison_of_a_command(env: &TestEnv) -> Outcome {
    let result = env.path("result.json");
    let program = env.program("append_log");
    let words = [
        "compare",
        "sync=off",
        "malloc=glibc:arena_max=1",
        "env.A=1",
        "--rounds",
        "12",
        "--quiet",
    ];
    let command = ["--json", &result, "--", &program, "log", "50"];
    expect_code(&env.refit(&[&words[..], &command].concat()), 0);
    expect_right(env, "compare", &result, &["svg"]);
    Outcome::Pass
}

fn a_comparison_of_a_recipe(env: &TestEnv) -> Outcome {
    let result = unpacked(env, "gallery/postgres-pgbench.packed");
    expect_right(
        env,
        "recipe",
        &stored(env, "recipe.json", &result),
        &["svg"],
    );
    Outcome::Pass
}

fn gain_and_risk(env: &TestEnv) -> Outcome {
    let result = unpacked(env, "proof/postgres-pgbench.packed");
    expect_right(env, "prove", &stored(env, "prove.json", &result), &["svg"]);
    Outcome::Pass
}

fn power_cuts(env: &TestEnv) -> Outcome {
    let result = &unpacked(env, "proof/sqlite-insert.packed")["proof"]["cut"];
    expect_right(env, "crash", &stored(env, "crash.json", result), &[]);
    Outcome::Pass
}

fn a_watch(env: &TestEnv) -> Outcome {
    let series = env.path("series.json");
    let program = env.program("append_log");
    let words = ["watch", "--json", &series, "--", &program, "log", "2000"];
    expect_code(&env.refit(&words), 0);
    expect_right(env, "watch", &series, &["svg"]);
    Outcome::Pass
}

fn a_pool(env: &TestEnv) -> Outcome {
    let one = unpacked(env, "gallery/rsyslog-sync.packed");
    let other = unpacked(env, "gallery/rsyslog-sync.disk.packed");
    let files =
        [("one.json", one), ("other.json", other)].map(|(name, result)| stored(env, name, &result));
    let pool = env.path("pool.json");
    expect_code(
        &env.refit(&["pool", &files[0], &files[1], "--json", &pool]),
        0,
    );
    expect_right(env, "pool", &pool, &["svg"]);
    Outcome::Pass
}

fn a_tuning(env: &TestEnv) -> Outcome {
    let program = env.program("append_log");
    let words = [
        "tune",
        "--budget",
        "20s",
        "--accept",
        "loses-on-crash",
        "--log",
        "tuned",
        "--",
    ];
    expect_code(
        &env.refit(&[&words[..], &[&program, "log", "50"]].concat()),
        0,
    );
    expect_right(env, "tune", &env.path("tuned/tune.json"), &[]);
    Outcome::Pass
}

fn a_history(env: &TestEnv) -> Outcome {
    env.subdir("log");
    for (name, day) in [
        ("rsyslog-sync", 0),
        ("rsyslog-sync.disk", 1),
        ("mariadb-commits", 0),
    ] {
        let mut result = unpacked(env, &format!("gallery/{name}.packed"));
        // The same command on two days.
        let started = result["started_unix"].as_u64().expect("a date") + day * 86_400;
        result["started_unix"] = started.into();
        stored(env, &format!("log/{name}.json"), &result);
    }
    let page = env.path("history.html");
    let keep = ["--keep", "rsyslog-sync.json", "conf.sync=dash"];
    let words = ["report", "--history", "log", "--html", &page];
    expect_code(&env.refit(&[&words[..], &keep].concat()), 0);
    expect_none("history", &problems(env, &page, &WIDTHS));
    Outcome::Pass
}
