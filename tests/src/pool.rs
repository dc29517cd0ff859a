//! `refit pool`: comparisons of several machines as one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::compare_files::report;
use crate::compared::{list, number, printed};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::schema::expect_valid_by;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_refused, refit_path};

pub const TESTS: &[Test] = &[
    test!(machines_count_once_and_what_tells_them_apart_is_named).limit_seconds(300),
    test!(what_does_not_belong_together_is_refused).limit_seconds(300),
    test!(results_of_other_versions_keep_their_meaning).limit_seconds(300),
    test!(a_thousand_results_fit_into_little_memory).limit_seconds(300),
];

const SCHEMA: &str = "pool.schema.json";

/// Compares `sync=off` beneath a log in this directory, as if on a machine of this name; the stored result.
fn measured(env: &TestEnv, machine: &str, directory: &Path, name: &str) -> Value {
    let stored = env.path(name);
    let mut refit = Command::new(refit_path());
    refit.current_dir(directory);
    refit.args([
        "compare",
        "sync=off",
        "--machine",
        machine,
        "--rounds",
        "16",
        "-q",
    ]);
    refit.args([
        "--json",
        &stored,
        "--",
        &env.program("append_log"),
        "log",
        "150",
    ]);
    let output = refit.output().expect("refit starts");
    expect_code(&output, 0);
    read(&stored)
}

fn read(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("it was written")).expect("it is JSON")
}

/// A result with other values, as a file of the test's.
fn changed(env: &TestEnv, of: &Value, name: &str, changes: &[(&str, Value)]) {
    let mut result = of.clone();
    for (place, value) in changes {
        *result.pointer_mut(place).expect("it is there") = value.clone();
    }
    env.file(name, &result.to_string());
}

fn pool(env: &TestEnv, words: &[&str]) -> Output {
    env.refit(&[&["pool"], words].concat())
}

/// A directory that a file system in memory has, of which syncs take no time.
struct InMemory(String);

impl Drop for InMemory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn machines_count_once_and_what_tells_them_apart_is_named(env: &TestEnv) -> Outcome {
    let memory = InMemory(format!("/dev/shm/refit-pool-{}", std::process::id()));
    fs::create_dir(&memory.0).expect("it is writable");
    let disk = env.subdir("disk");
    env.subdir("results");
    // One comparison on each disk; other machines with such a disk have the same.
    let of_disk = measured(env, "disk-a", Path::new(&disk), "results/a1.json");
    let of_memory = measured(env, "memory-a", Path::new(&memory.0), "results/b1.json");
    for (of, machine, name) in [
        (&of_disk, "disk-b", "results/c1.json"),
        (&of_memory, "memory-b", "results/d1.json"),
        (&of_disk, "disk-a", "results/a2.json"),
    ] {
        let seed = number(&of["seed"]) as u64 + name.len() as u64 + u64::from(name.as_bytes()[8]);
        let later = number(&of["started_unix"]) as u64 + 1000;
        let changes = [
            ("/seed", json!(seed)),
            ("/started_unix", json!(later)),
            ("/environment/fixed/machine", json!(machine)),
        ];
        changed(env, of, name, &changes);
    }
    env.file("results/other.json", "[1, 2]");
    let files = ["json", "md", "html", "svg"].map(|end| [format!("--{end}"), env.path(end)]);
    let files: Vec<&str> = files.as_flattened().iter().map(String::as_str).collect();
    let output = pool(env, &[&[&*env.path("results")], &files[..]].concat());
    expect_code(&output, 0);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("1 of 6 files hold no comparison"), "{told}");
    // Beside files the text is printed, as by `compare`.
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("disk-a"), "{shown}");
    let alone = pool(env, &[&env.path("results"), "--json", "-"]);
    expect_code(&alone, 0);
    let of_stdout: Value = serde_json::from_slice(&alone.stdout).expect("JSON, and nothing else");
    assert_eq!(of_stdout["kind"], "pool");

    let pooled = read(&env.path("json"));
    expect_valid_by(SCHEMA, &pooled);
    assert_eq!(pooled["words"], json!([env.path("results")]));
    let names = list(&pooled["machines"])
        .iter()
        .map(|machine| machine["name"].as_str());
    let names: Vec<&str> = names.map(|name| name.expect("a name")).collect();
    assert_eq!(names, ["disk-a", "memory-a", "disk-b", "memory-b"]);
    assert_eq!(list(&pooled["results"]).len(), 5);
    let variant = &pooled["variants"][0];
    let of_machines = list(&variant["machines"]);
    assert_eq!(of_machines.len(), 4, "{variant:#}");
    assert_eq!(
        [&of_machines[0]["results"], &of_machines[1]["results"]],
        [2, 1]
    );
    // Each machine counts once: the mean of four logarithms, and not of five.
    let logs = of_machines.iter().map(|one| number(&one["change"]).ln_1p());
    let mean = logs.sum::<f64>() / 4.0;
    let change = number(&variant["pooled"]["change"]);
    assert!((change.ln_1p() - mean).abs() < 1e-9, "{variant:#}");
    assert_eq!(variant["pooled"]["differ"], true, "{variant:#}");
    let disks = list(&variant["factors"])
        .iter()
        .find(|factor| factor["name"] == "disk");
    let disks = disks.unwrap_or_else(|| panic!("{variant:#}"));
    let groups = list(&disks["groups"]);
    assert_eq!(groups[0]["machines"], json!([0, 2]), "{disks:#}");
    assert_eq!(groups[1]["machines"], json!([1, 3]), "{disks:#}");
    assert_eq!(groups[1]["value"], "tmpfs", "{disks:#}");

    // Stored, it is drawn again the same.
    for end in ["md", "html", "svg"] {
        let again = env.path(&format!("again.{end}"));
        expect_code(&report(env, &["json", &format!("--{end}"), &again]), 0);
        let [first, again] = [env.path(end), again].map(|path| fs::read(path).expect("drawn"));
        assert!(!first.is_empty() && first == again, "{end} differs");
    }
    let text = printed(&report(env, &["json"]));
    for part in [
        "what `sync=off` gives depends on the",
        "tmpfs",
        "disk-a",
        "the next machine",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    Outcome::Pass
}

fn what_does_not_belong_together_is_refused(env: &TestEnv) -> Outcome {
    let first = measured(env, "one", env.dir(), "first.json");
    let seed = number(&first["seed"]) as u64;
    let other = |name: &str, changes: &[(&str, Value)]| {
        let own = [("/seed", json!(seed ^ 1))];
        changed(env, &first, name, &[&own[..], changes].concat());
    };
    other("command.json", &[("/command", json!(["true"]))]);
    other("main.json", &[("/main", json!("cpu"))]);
    other("schema.json", &[("/schema", json!(999))]);
    other(
        "variant.json",
        &[("/variants/1/name", json!("malloc=jemalloc"))],
    );
    other("damaged.json", &[("/runs", json!("none"))]);
    other("kind.json", &[("/kind", json!("crash\u{1b}"))]);
    changed(env, &first, "twice.json", &[]);
    env.file("text.json", "no result");
    env.subdir("empty");
    for (words, texts) in [
        (
            &["first.json"][..],
            &["first.json", "two results or more"][..],
        ),
        (
            &["first.json", "command.json"],
            &["command.json", "another command than first.json", "true"],
        ),
        (
            &["first.json", "main.json"],
            &["main.json", "another metric", "cpu", "wall"],
        ),
        (
            &["first.json", "schema.json"],
            &["schema.json has schema 999", "use the refit that wrote it"],
        ),
        (
            &["first.json", "variant.json"],
            &[
                "variant.json",
                "no variant that first.json has",
                "malloc=jemalloc",
            ],
        ),
        (
            &["first.json", "damaged.json"],
            &["damaged.json is damaged"],
        ),
        (
            &["first.json", "kind.json"],
            &["kind.json holds a `crash", "refit compare --json FILE"],
        ),
        (
            &["first.json", "twice.json"],
            &["twice.json", "first.json", "the same comparison"],
        ),
        (
            &["first.json", "text.json"],
            &["text.json is not a result of refit: it is not JSON"],
        ),
        (
            &["first.json", "missing.json"],
            &["cannot read missing.json"],
        ),
        (
            &["empty"],
            &["no result in empty", "refit compare --json empty/"],
        ),
        (
            &["first.json", "twice.json", "--json", "no/where"],
            &["no/where"],
        ),
    ] {
        let words = [&["pool"], words].concat();
        expect_refused(env, &words, texts);
    }
    Outcome::Pass
}

/// Results that were stored before machines had names in them.
fn results_of_other_versions_keep_their_meaning(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let bench = source_dir().join("bench");
    let mut reader = Command::new("python3");
    reader
        .arg(bench.join("packed.py"))
        .arg(bench.join("gallery/fsync-loop.packed"));
    let output = reader.output().expect("python3 starts");
    assert!(output.status.success(), "{}", described(&output));
    let mut old: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    // Results of before machines had names are like this one, without the name.
    let fixed = old["environment"]["fixed"].as_object_mut();
    fixed.expect("an object").remove("machine");
    let seed = number(&old["seed"]) as u64;
    changed(env, &old, "old.json", &[]);
    changed(env, &old, "again.json", &[("/seed", json!(seed ^ 1))]);
    let elsewhere = [
        ("/seed", json!(seed ^ 2)),
        ("/environment/fixed/memory", json!("1 kB")),
    ];
    changed(env, &old, "elsewhere.json", &elsewhere);
    let output = pool(
        env,
        &[
            "old.json",
            "again.json",
            "elsewhere.json",
            "--json",
            "pool.json",
        ],
    );
    expect_code(&output, 0);
    let pooled = read(&env.path("pool.json"));
    expect_valid_by(SCHEMA, &pooled);
    let machines = list(&pooled["machines"]);
    assert_eq!(machines.len(), 2, "{machines:#?}");
    assert!(
        machines[1]["name"]
            .as_str()
            .expect("a name")
            .contains("1 kB")
    );
    // What each machine measured is what its own result tells.
    let told = list(&old["effects"])
        .iter()
        .find(|effect| effect["metric"] == old["main"] && effect["variant"] == 1);
    let change = number(&told.expect("it is there")["change"]);
    for machine in list(&pooled["variants"][0]["machines"]) {
        assert!(
            (number(&machine["change"]) - change).abs() < 1e-9,
            "{machine:#}"
        );
    }
    let text = printed(&report(env, &["pool.json"]));
    assert!(text.contains("without a machine's name"), "{text}");
    Outcome::Pass
}

fn a_thousand_results_fit_into_little_memory(env: &TestEnv) -> Outcome {
    const RESULTS: u64 = 1000;
    const MOST_BYTES: f64 = 300e6;
    let first = measured(env, "one", env.dir(), "first.json");
    let dir = env.subdir("many");
    for number in 0..RESULTS {
        let own = [
            ("/seed", json!(number)),
            (
                "/environment/fixed/machine",
                json!(format!("machine-{}", number % 40)),
            ),
        ];
        changed(env, &first, &format!("many/{number}.json"), &own);
    }
    let refit = refit_path();
    let pooling = [&*refit, "pool", &dir, "--json", "pool.json"];
    let run = [&["run", "--json", "run.json", "--"], &pooling[..]].concat();
    expect_code(&env.refit(&run), 0);
    let usage = &read(&env.path("run.json"))["metrics"]["max_rss_bytes"];
    let most = number(usage);
    assert!(most > 0.0 && most < MOST_BYTES, "{most} bytes");
    let pooled = read(&env.path("pool.json"));
    assert_eq!(list(&pooled["results"]).len() as u64, RESULTS);
    assert_eq!(list(&pooled["machines"]).len(), 40);
    Outcome::Pass
}
