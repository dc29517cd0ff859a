//! The cluster of `scripts/cluster`, and what goes on in it.

use std::fs;
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::compared::{list, printed};
use crate::containers::DEFAULT;
use crate::deadline::Deadline;
use crate::locations::source_dir;
use crate::test_env::{TestEnv, expect_code};

/// How long a pod may take to get where it is waited for.
const TIMEOUT: Duration = Duration::from_secs(240);

pub fn cluster(env: &TestEnv, words: &[&str]) -> Output {
    let script = source_dir().join("scripts/cluster");
    let mut command = env.command(&script.to_string_lossy());
    command.args(words).output().expect("scripts/cluster runs")
}

pub fn kubectl(env: &TestEnv, words: &[&str]) -> String {
    let output = cluster(env, &[&["kubectl"], words].concat());
    expect_code(&output, 0);
    printed(&output)
}

/// What `kubectl get` gives as JSON.
pub fn object(env: &TestEnv, words: &[&str]) -> Value {
    let text = kubectl(env, &[&["get"], words, &["-o", "json"]].concat());
    serde_json::from_str(&text).expect("it is JSON")
}

/// The cluster's kubectl as one program, with these options.
pub fn program(env: &TestEnv, name: &str, options: &str) -> String {
    let script = source_dir().join("scripts/cluster");
    let text = format!(
        "#!/bin/sh\nexec '{}' kubectl {options} \"$@\"\n",
        script.display()
    );
    let path = env.file(name, &text);
    let output = env.run(&["chmod", "755", &path]);
    expect_code(&output, 0);
    path
}

pub fn wait_for<T>(env: &TestEnv, what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let mut deadline = Deadline::after(TIMEOUT);
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(
            !deadline.is_over(),
            "no {what}: {}",
            kubectl(
                env,
                &["get", "nodes,pods", "-o", "wide", "--all-namespaces"]
            )
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Until the Job has this condition.
pub fn wait_for_job(env: &TestEnv, namespace: &str, job: &str, condition: &str) {
    let conditions = "jsonpath={.status.conditions[*].type}";
    let get = [
        "get",
        "--namespace",
        namespace,
        "job",
        job,
        "-o",
        conditions,
    ];
    wait_for(env, "end of the Job", || {
        kubectl(env, &get).contains(condition).then_some(())
    });
}

/// Until each pod of the Deployment is of its newest template.
pub fn rolled_out(env: &TestEnv, namespace: &str, name: &str) {
    let deployment = format!("deployment/{name}");
    let status = ["rollout", "status", &deployment, "--timeout=240s"];
    kubectl(env, &[&["--namespace", namespace], &status[..]].concat());
}

/// Takes a file of `refit export kubernetes apply`.
pub fn patched(env: &TestEnv, namespace: &str, name: &str, file: &str) {
    let deployment = format!("deployment/{name}");
    let patch = ["patch", &deployment, "--type=json", "--patch-file", file];
    kubectl(env, &[&["--namespace", namespace], &patch[..]].concat());
}

/// The words of `refit export kubernetes apply` for the object in a file.
pub fn export_of<'a>(object: &'a str, form: &'a str, file: &'a str) -> [&'a str; 9] {
    [
        "export",
        "kubernetes",
        "apply",
        "--of",
        object,
        "--form",
        form,
        "--out",
        file,
    ]
}

/// Each node has the seccomp profile of `sync=off`.
pub fn put_profile_of_sync_off(env: &TestEnv) {
    let profile = env.path("off.json");
    let words = [
        "export",
        "oci",
        "sync=off",
        "--profile",
        DEFAULT,
        "--seccomp",
        &profile,
    ];
    expect_code(&env.refit(&words), 0);
    expect_code(&cluster(env, &["seccomp", &profile]), 0);
}

/// The pods of the Job.
pub fn pods(env: &TestEnv, job: &str) -> Vec<Value> {
    let selector = format!("batch.kubernetes.io/job-name={job}");
    let pods = object(env, &["pods", "--all-namespaces", "-l", &selector]);
    list(&pods["items"]).clone()
}

pub fn index(pod: &Value) -> u64 {
    let annotation = "/metadata/annotations/batch.kubernetes.io~1job-completion-index";
    let index = pod.pointer(annotation).and_then(Value::as_str);
    index.expect("it has one").parse().expect("a number")
}

pub fn text<'a>(pod: &'a Value, place: &str) -> &'a str {
    pod.pointer(place).and_then(Value::as_str).unwrap_or("")
}

/// A refit that compares in a pod of this index, as this machine numbers it.
pub fn comparing(seed: u64, index: u64) -> Option<u32> {
    let processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let seed = format!("{seed}+{index}");
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
            words.first() == Some(&&b"/refit/bin/refit"[..]) && words.contains(&seed.as_bytes())
        })
}
