//! Chromium as an ordinary user, with its sandbox: many processes, a zygote, seccomp filters of its own, no
//! filesystem in its renderers. A browser of 300 MB is not part of `make test`: `make test-chromium`.

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, expect_code, refit_path, wait_for, wait_until};
use crate::{places, sys, test};

pub const TESTS: &[Test] = &[
    test!(a_page_looks_the_same).limit_seconds(180).when_named(),
    test!(every_process_has_the_library)
        .limit_seconds(180)
        .when_named(),
];

const PAGE: &str = "<body style='background: #fff'><h1 style='color: #c00'>A page</h1><script>\
    document.body.append(`${[1, 2, 3].map((n) => n * n)}`)</script>";

/// Words that run a command as an ordinary user whose home is this directory.
fn ordinary(env: &TestEnv, home: &str) -> Vec<String> {
    env.require_command("chromium");
    fs::create_dir(home).expect("the test's directory is ours");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut words = Vec::new();
    if env.as_root() {
        chown(home, Some(65534), Some(65534)).expect("root may give files away");
        words.extend([
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--",
        ]);
    }
    words.extend(["env", "-i", "-C", home]);
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    words.extend([
        format!("PATH={path}"),
        format!("HOME={home}"),
        "LC_ALL=C".to_owned(),
    ]);
    words
}

/// refit, where everybody may run it, and what comes before the browser's own words.
fn under_refit(env: &TestEnv, home: &str) -> Vec<String> {
    let refit = places::public(env, &refit_path());
    let json = format!("{home}/report.json");
    [&*refit, "run", "--quiet", "--json", &json, "sync=off", "--"]
        .map(str::to_owned)
        .into()
}

const BROWSER: [&str; 5] = [
    "chromium",
    "--headless",
    "--disable-gpu",
    "--window-size=400,300",
    "--disable-dev-shm-usage",
];

fn picture(env: &TestEnv, name: &str, page: &str, with_refit: bool) -> Vec<u8> {
    let home = env.path(name);
    let mut words = ordinary(env, &home);
    if with_refit {
        words.extend(under_refit(env, &home));
    }
    words.extend(BROWSER.map(str::to_owned));
    words.extend([format!("--screenshot={home}/page.png"), page.to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    expect_code(&env.run(&words), 0);
    fs::read(format!("{home}/page.png")).expect("it wrote a picture")
}

fn a_page_looks_the_same(env: &TestEnv) -> Outcome {
    let page = format!("file://{}", env.file("page.html", PAGE));
    let without = picture(env, "without", &page, false);
    let with = picture(env, "with", &page, true);
    let blank = picture(env, "blank", "about:blank", false);
    assert!(without.starts_with(b"\x89PNG"));
    assert!(without != blank, "the page is blank without refit already");
    assert!(with == without, "the page looks otherwise under refit");
    let report = fs::read_to_string(env.path("with/report.json")).expect("refit wrote it");
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let suppressed = number(&report["totals"]["fdatasync"]["suppressed"]);
    println!("{suppressed} calls of fdatasync suppressed");
    assert!(suppressed > 0, "{report:#}");
    Outcome::Pass
}

fn every_process_has_the_library(env: &TestEnv) -> Outcome {
    env.require_root(); // to look into the sandbox
    let home = env.path("home");
    let mut words = ordinary(env, &home);
    words.extend(under_refit(env, &home));
    words.extend(BROWSER.map(str::to_owned));
    words.extend([
        "--remote-debugging-port=0".to_owned(),
        "about:blank".to_owned(),
    ]);
    let log = env.path("log");
    let mut browser = Command::new(&words[0])
        .args(&words[1..])
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).expect("the test's directory is ours"))
        .spawn()
        .expect("setpriv and env are there");
    wait_until("chromium to start", || {
        fs::read_to_string(&log).is_ok_and(|messages| messages.contains("DevTools listening"))
    });
    // The renderer comes a moment after the door is open.
    let kinds = wait_for(
        "a browser, a zygote and a renderer with the library",
        || {
            let kinds = mapped(env);
            let all = ["browser", "zygote", "renderer"];
            all.iter()
                .all(|kind| kinds.iter().any(|found| found == kind))
                .then_some(kinds)
        },
    );
    println!("mapped in {kinds:?}");
    assert!(kinds.len() >= 3);
    sys::send_signal(
        i32::try_from(browser.id()).expect("process ids are ints"),
        libc::SIGTERM,
    );
    let _ = browser.wait();
    // What its sandbox says when a call comes that it does not know.
    let messages = fs::read_to_string(&log).expect("it was written");
    assert!(!messages.contains("seccomp-bpf failure"), "{messages}");
    Outcome::Pass
}

/// What each process of the browser is that has refit's library mapped.
fn mapped(env: &TestEnv) -> Vec<String> {
    let home = env.path("home");
    let all = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    all.filter_map(|entry| {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).ok();
        let words = read("cmdline")?;
        // The others are told where the profile lies; the first one knows by itself.
        let is_ours = words.contains("/chromium/chromium")
            && (words.contains(&home) || read("environ")?.contains(&home));
        let maps = read("maps").filter(|maps| is_ours && maps.contains("librefit-sync"));
        maps?;
        // A child of the zygote has its words in one.
        let kind = words
            .split(['\0', ' '])
            .find_map(|word| word.strip_prefix("--type="));
        Some(kind.unwrap_or("browser").to_owned())
    })
    .collect()
}
