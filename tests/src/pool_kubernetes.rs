//! `refit pool --from kubernetes`, by a kubectl of the test's.

use std::process::Command;

use serde_json::{Value, json};

use crate::compared::{list, messages};
use crate::fake_kubectl::{ended, framed, job, kubectl, log, pod, pods, pooled, whole_text};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_refused, refit_path,
};

pub const TESTS: &[Test] = &[
    test!(an_index_counts_once_and_those_that_do_not_are_named).limit_seconds(180),
    test!(a_log_that_is_not_exactly_a_result_is_refused).limit_seconds(180),
    test!(a_job_that_cannot_be_read_is_explained),
];

fn an_index_counts_once_and_those_that_do_not_are_named(env: &TestEnv) -> Outcome {
    let program = kubectl(env);
    job(env, 6);
    let mut stranger = pod(0, "of-another-job", "db9", "Succeeded");
    stranger["metadata"]["ownerReferences"][0]["uid"] = json!("c0ff");
    let mut evicted = pod(3, "evicted", "db1", "Failed");
    evicted["status"]["reason"] = json!("Evicted");
    let all = [
        stranger,
        pod(0, "first", "db1", "Succeeded"),
        ended(
            pod(1, "second-a", "db2", "Failed"),
            137,
            "OOMKilled",
            "2026-01-01T00:00:01Z",
        ),
        pod(1, "second-b", "db2", "Succeeded"),
        ended(
            pod(2, "third-a", "db1", "Failed"),
            1,
            "Error",
            "2026-01-01T00:00:01Z",
        ),
        ended(
            pod(2, "third-b", "db1", "Failed"),
            3,
            "Error",
            "2026-01-01T00:00:02Z",
        ),
        evicted,
        ended(
            pod(5, "sixth-late", "db2", "Succeeded"),
            0,
            "Completed",
            "2026-01-01T00:00:09Z",
        ),
        ended(
            pod(5, "sixth", "db1", "Succeeded"),
            0,
            "Completed",
            "2026-01-01T00:00:01Z",
        ),
    ];
    pods(env, &all);
    // Index 4 alone has completed of those without a pod that succeeded.
    let ended_job = std::fs::read_to_string(env.path("job")).expect("it was written");
    env.file("job", &ended_job.replace("0-5", "0-1,4-5"));
    for (index, name, node) in [
        (0, "first", "db1"),
        (1, "second-b", "db2"),
        (5, "sixth", "db1"),
    ] {
        env.file(&format!("log-{name}"), &log(env, index, node));
    }
    let place = ["--context=lab", "-n", "measured", "--json", "pool.json"];
    let output = pooled(env, &program, &place);
    expect_code(&output, 0);
    let told = messages(&output);
    for text in [
        "index 2 is not counted: pod third-b, the last of 2 pods: exit code 3",
        "index 3 is not counted: pod evicted: Evicted",
        "index 4 is not counted: it completed, but its pod was deleted",
    ] {
        assert!(told.contains(text), "{text}: {}", described(&output));
    }
    assert_eq!(told.matches("is not counted").count(), 3, "{told}");
    let result = std::fs::read_to_string(env.path("pool.json")).expect("it was written");
    let result: Value = serde_json::from_str(&result).expect("it is JSON");
    let mut results: Vec<(&str, u64)> = list(&result["results"])
        .iter()
        .map(|one| {
            (
                one["file"].as_str().expect("a name"),
                one["seed"].as_u64().expect("a seed"),
            )
        })
        .collect();
    results.sort_unstable();
    let expected = [
        ("job/spread index 0", 40),
        ("job/spread index 1", 41),
        ("job/spread index 5", 45),
    ];
    assert_eq!(results, expected);
    let names = list(&result["machines"])
        .iter()
        .map(|one| one["name"].as_str());
    assert_eq!(names.flatten().collect::<Vec<_>>(), ["db1", "db2"]);

    let asked = std::fs::read_to_string(env.path("asked")).expect("it was asked");
    assert_eq!(asked.matches(" logs ").count(), 3, "{asked}");
    for line in asked.lines() {
        assert!(
            line.contains("--context=lab --namespace=measured"),
            "{line}"
        );
        let is_reading = [" get job/", " get pods ", " logs pod/"]
            .iter()
            .any(|word| line.contains(word));
        assert!(is_reading, "{line}");
    }
    let output = pooled(env, &program, &["--without", "5"]);
    expect_message(&output, 0, "index 5 is not counted: --without names it");
    Outcome::Pass
}

fn a_log_that_is_not_exactly_a_result_is_refused(env: &TestEnv) -> Outcome {
    let program = kubectl(env);
    job(env, 2);
    let succeeded = [
        pod(0, "good", "db1", "Succeeded"),
        pod(1, "bad", "db2", "Succeeded"),
    ];
    pods(env, &succeeded);
    env.file("log-good", &log(env, 0, "db1"));
    let whole = log(env, 1, "db2");
    env.file("log-bad", &whole);
    expect_code(&pooled(env, &program, &[]), 0);

    let lines: Vec<&str> = whole.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.starts_with("refit-result"));
    let first = first.expect("it has a beginning");
    let without = |at: usize| {
        let kept = lines.iter().enumerate().filter(|(line, _)| *line != at);
        kept.map(|(_, line)| format!("{line}\n"))
            .collect::<String>()
    };
    let text = |number: usize| lines[number].split(' ').nth(3).expect("a word").to_owned();
    let deep = "[".repeat(1_000_000);
    // A value that would pass for advice.
    let forged =
        whole_text(env, &whole).replacen("\"class\":\"safe\"", "\"class\":\"x\\n  type this\"", 1);
    let other_name = framed(
        env,
        1,
        &json!({"schema": 1, "kind": "\u{1b}[2Jx"}).to_string(),
    );
    // In the text of the result: what refit prints before it may have such letters too.
    let (before, framed_text) = whole.split_at(whole.find("refit-result").expect("it has one"));
    let other_letter = format!("{before}{}", framed_text.replacen('A', "B", 1));
    let cases: Vec<(String, &str)> = vec![
        (String::new(), "holds no result"),
        ("refit: a failed run\n".to_owned(), "holds no result"),
        (without(first), "is truncated: its beginning"),
        (without(first + 2), "is truncated: line 1"),
        (without(lines.len() - 1), "is truncated: its end"),
        (whole[..whole.len() / 2].to_owned(), "the log of pod bad"),
        (
            whole[whole.len() / 2..].to_owned(),
            "is truncated: its beginning",
        ),
        (other_letter, "the log of pod bad"),
        (
            whole.replace(&text(first + 1), "QUJD"),
            "the log of pod bad",
        ),
        (
            [framed(env, 1, "{}"), whole.clone()].concat(),
            "holds a second result",
        ),
        (
            [whole.clone(), framed(env, 1, "{}")].concat(),
            "holds a second result",
        ),
        ([&*whole, &*whole].concat(), "holds a second result"),
        (
            ["refit-result v1 begin 1 9 0\n", &whole].concat(),
            "holds a second result",
        ),
        (
            ["refit-result v1 0 QUJD\n", &whole].concat(),
            "is truncated: its beginning",
        ),
        (
            whole.replace("refit-result v1", "refit-result v2"),
            "in another form",
        ),
        (log(env, 0, "db2"), "holds the result of index 0"),
        (
            log(env, 1, "db7"),
            "is of the machine db7, and the pod ran on db2",
        ),
        (framed(env, 1, "{}"), "is not a result of refit"),
        (framed(env, 1, "not JSON"), "is not JSON"),
        (
            framed(env, 1, "{\"schema\": 1, \"kind\": \"compare\""),
            "is not JSON",
        ),
        (framed(env, 1, &format!("{{\"x\": {deep}")), "is not JSON"),
        (framed(env, 1, &forged), "unknown variant `x\\n  type this`"),
        (
            framed(env, 1, "{\"schema\": 999, \"kind\": \"compare\"}"),
            "has schema 999",
        ),
        (other_name, "holds a `\\u{1b}[2Jx`"),
        (
            format!("refit-result v1 begin 1 {} 0\n", u64::MAX),
            "is larger than any result",
        ),
    ];
    for (number, (log, text)) in cases.iter().enumerate() {
        env.file("log-bad", log);
        let output = pooled(env, &program, &["--json", "pool.json"]);
        let shown = || format!("{number}: {}", described(&output));
        assert_eq!(output.status.code(), Some(2), "{}", shown());
        let told = messages(&output);
        assert!(
            told.contains(text) && told.contains("index 1"),
            "{text}: {}",
            shown()
        );
        // What to type next, and one message.
        assert!(told.contains("--without 1"), "{}", shown());
        let messages = told.lines().filter(|line| line.starts_with("refit: "));
        assert_eq!(messages.count(), 1, "{}", shown());
        assert!(!told.contains('\u{1b}'), "{}", shown());
        assert!(
            !std::path::Path::new(&env.path("pool.json")).exists(),
            "{}",
            shown()
        );
    }
    let known = whole.replace('\n', "\r\n");
    env.file("log-bad", &format!("no end of line{known}\u{1b}[2J\n"));
    expect_code(&pooled(env, &program, &[]), 0);
    Outcome::Pass
}

fn a_job_that_cannot_be_read_is_explained(env: &TestEnv) -> Outcome {
    let program = kubectl(env);
    let pool = ["pool", "--from", "kubernetes", "--kubectl", &program];
    for (words, texts) in [
        (
            &["spread"][..],
            &["spread is no name of a Job", "write job/NAME"][..],
        ),
        (&["job/--kubeconfig=x"], &["is no name of a Job"]),
        (&["job/"], &["is no name of a Job"]),
        (&["pod/spread"], &["is no name of a Job"]),
    ] {
        expect_refused(env, &[&pool[..], words].concat(), texts);
    }
    assert!(
        !std::path::Path::new(&env.path("asked")).exists(),
        "nothing was asked"
    );
    expect_refused(
        env,
        &[
            "pool",
            "--from",
            "kubernetes",
            "job/spread",
            "--kubectl",
            "/none/kubectl",
        ],
        &[
            "cannot run /none/kubectl",
            "install kubectl",
            "--kubectl /PATH/kubectl",
        ],
    );
    let mut without_path = Command::new(refit_path());
    without_path.current_dir(env.dir()).env("PATH", "/none");
    without_path.args(["pool", "--from", "kubernetes", "job/spread"]);
    let output = without_path.output().expect("refit starts");
    expect_message(&output, 2, "cannot run kubectl; install kubectl");

    let words = [&pool[..], &["job/spread"]].concat();
    for (failure, texts) in [
        (
            "Error from server (NotFound): jobs.batch \"spread\" not found\n",
            &["(NotFound)", "get jobs lists the Jobs", "--namespace NAME"][..],
        ),
        (
            "Error from server (Forbidden): jobs.batch \"spread\" is forbidden: User \"x\" cannot get\n",
            &["(Forbidden)", "pods/log", "auth can-i --list"],
        ),
        (
            "E1 memcache.go:265] couldn't get current server API group list\nThe connection to the server localhost:8080 was refused\n",
            &["localhost:8080 was refused", "whether the cluster answers"],
        ),
        ("a\u{1b}[2Jb\n", &["a\\u{1b}[2Jb"]),
        ("", &["it printed no reason"]),
    ] {
        env.file("failure", failure);
        expect_refused(env, &words, texts);
    }
    std::fs::remove_file(env.path("failure")).expect("it is ours");

    job(env, 2);
    pods(env, &[]);
    let ended = std::fs::read_to_string(env.path("job")).expect("it was written");
    for (job, texts) in [
        (String::new(), &["not the Job spread"][..]),
        ("[".repeat(100_000), &["not the Job spread"]),
        (
            ended.replace("\"spread\"", "\"other\""),
            &["not the Job spread"],
        ),
        (
            ended.replace("Indexed", "NonIndexed"),
            &["its pods have no index", "refit export kubernetes compare"],
        ),
        (
            ended.replace("\"completions\":2", "\"completions\":4294967295"),
            &["its pods have no index"],
        ),
        (
            ended
                .replace("True", "False")
                .replace("\"succeeded\":2", "\"succeeded\":1"),
            &[
                "not finished: 1 of 2 indexes",
                "wait --for=condition=complete",
                "job/spread",
            ],
        ),
        (
            ended.clone(),
            &[
                "index 0 is not counted: it completed",
                "results that count: 0",
            ],
        ),
    ] {
        env.file("job", &job);
        expect_refused(env, &words, texts);
    }
    env.file("job", &ended);
    expect_refused(
        env,
        &[&words[..], &["--without", "2"]].concat(),
        &["--without 2", "0 to 1"],
    );
    env.file("pods", "{\"items\": 1}");
    expect_refused(env, &words, &["not a list of pods"]);
    // A kubectl that prints without an end.
    env.file("kubectl", "#!/bin/sh\nexec cat /dev/zero\n");
    expect_refused(env, &words, &["printed more than"]);
    Outcome::Pass
}
