//! A kubectl that prints what a cluster, or somebody in a pod, could print; and the results that pods print.

use std::process::Output;

use serde_json::{Value, json};

use crate::test_env::{TestEnv, expect_code};

const UID: &str = "b0a1";

/// It prints the file `job`, `pods` or `log-POD`, and keeps what it was asked. A file `failure` is what it fails with.
const KUBECTL: &str = "#!/bin/sh
cd \"${0%/*}\" || exit 1
echo \"$*\" >>asked
[ ! -e failure ] || { cat failure >&2; exit 1; }
case \"$*\" in
*' get job/'*) exec cat job ;;
*' get pods '*) exec cat pods ;;
*' logs pod/'*) log=${*#* logs pod/} && exec cat \"log-${log%% *}\" ;;
esac
exit 64
";

/// The program, in the test's directory.
pub fn kubectl(env: &TestEnv) -> String {
    let path = env.file("kubectl", KUBECTL);
    expect_code(&env.run(&["chmod", "755", &path]), 0);
    path
}

/// A Job of this many indexes that has ended, all of which completed.
pub fn job(env: &TestEnv, completions: u32) {
    let job = json!({
        "kind": "Job",
        "metadata": {"name": "spread", "uid": UID},
        "spec": {"completionMode": "Indexed", "completions": completions},
        "status": {
            "conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
            "completedIndexes": format!("0-{}", completions - 1),
            "succeeded": completions,
        },
    });
    env.file("job", &job.to_string());
}

pub fn pod(index: u32, name: &str, node: &str, phase: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "annotations": {"batch.kubernetes.io/job-completion-index": index.to_string()},
            "ownerReferences": [{"kind": "Job", "uid": UID}],
        },
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    })
}

pub fn ended(mut pod: Value, code: i32, reason: &str, at: &str) -> Value {
    let end = json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": at}});
    pod["status"]["containerStatuses"] = json!([{"name": "compare", "state": end}]);
    pod
}

pub fn pods(env: &TestEnv, pods: &[Value]) {
    env.file("pods", &json!({"items": pods}).to_string());
}

/// What a pod of this index prints that compares on this node.
pub fn log(env: &TestEnv, index: u32, node: &str) -> String {
    let [index, append_log] = [index.to_string(), env.program("append_log")];
    let words = [
        "compare",
        "sync=off",
        "--rounds",
        "4",
        "--quiet",
        "--machine",
        node,
        "--seed",
        &format!("40+{index}"),
        "--log-result",
        &index,
        "--",
        &append_log,
        "log",
        "40",
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    // As containerd keeps both streams.
    [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).expect("it is text"))
        .concat()
}

pub fn pooled(env: &TestEnv, kubectl: &str, words: &[&str]) -> Output {
    let pool = ["pool", "--from", "kubernetes", "job/spread"];
    env.refit(&[&pool[..], &["--kubectl", kubectl], words].concat())
}

/// A result in the form that a pod writes, by other programs than refit.
pub fn framed(env: &TestEnv, index: u32, text: &str) -> String {
    env.file("text", text);
    let script = "sum=$(sha256sum <text) && sum=${sum%% *}
        echo && echo \"refit-result v1 begin $0 $(wc -c <text) $sum\"
        base64 -w 4096 text | awk '{ print \"refit-result v1 \" NR - 1 \" \" $0 }'
        echo \"refit-result v1 end $0 $sum\"";
    let output = env.run(&["sh", "-c", script, &index.to_string()]);
    expect_code(&output, 0);
    String::from_utf8(output.stdout).expect("it is text")
}

/// The result in a log, decoded by another program than refit.
pub fn whole_text(env: &TestEnv, log: &str) -> String {
    let lines = log
        .lines()
        .filter_map(|line| line.strip_prefix("refit-result v1 "));
    let chunks = lines.filter_map(|line| line.split_once(' '));
    let chunks = chunks.filter(|(number, _)| number.parse::<u32>().is_ok());
    // Each line but the last is a multiple of three bytes, so that base64 takes them as one.
    let all: String = chunks.map(|(_, chunk)| format!("{chunk}\n")).collect();
    let output = env.run(&["base64", "-d", &env.file("base64", &all)]);
    expect_code(&output, 0);
    String::from_utf8(output.stdout).expect("it is text")
}
