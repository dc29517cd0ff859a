//! `refit export kubernetes apply`: patches of a workload, without a cluster.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_refused};

pub const TESTS: &[Test] = &[
    test!(a_patch_can_be_applied_and_taken_back),
    test!(a_patch_of_what_has_changed_fails),
    test!(what_a_workload_cannot_have_is_refused),
];

const LIBRARY: &str =
    "registry.example:5000/allocators:1:/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

fn workload() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}, "template": {"spec": {
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [
                {"name": "db", "image": "db", "env": [{"name": "LD_PRELOAD", "value": "/own.so"}]},
                {"name": "side", "image": "side", "command": ["/side"]},
            ],
        }}},
    })
}

/// Applies RFC 6902 with Debian's python3-jsonpatch; what came, or the error.
fn applied(env: &TestEnv, object: &str, patch: &str) -> Result<Value, String> {
    let script = "import json, jsonpatch, sys\n\
                  object, patch = [json.load(open(name)) for name in sys.argv[1:]]\n\
                  print(json.dumps(jsonpatch.JsonPatch(patch).apply(object)))";
    let mut python = Command::new("/usr/bin/python3");
    python.current_dir(env.dir());
    let output = python
        .args(["-c", script, object, patch])
        .output()
        .expect("python3 starts");
    if !output.status.success() {
        return Err(described(&output));
    }
    Ok(serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

fn require_jsonpatch(env: &TestEnv) {
    env.require_command("/usr/bin/python3");
    let mut python = Command::new("/usr/bin/python3");
    let output = python
        .args(["-c", "import jsonpatch"])
        .output()
        .expect("python3 starts");
    if !output.status.success() {
        env.skip("needs python3-jsonpatch");
    }
}

/// The patch and its inverse, as p.json and i.json.
fn patches(env: &TestEnv, words: &[&str]) {
    for (form, file) in [("json", "p.json"), ("inverse", "i.json")] {
        let own = [
            "export",
            "kubernetes",
            "apply",
            "--of",
            "w.json",
            "--form",
            form,
            "--out",
            file,
        ];
        expect_code(&env.refit(&[&own[..], words].concat()), 0);
    }
}

fn a_patch_can_be_applied_and_taken_back(env: &TestEnv) -> Outcome {
    require_jsonpatch(env);
    let before = workload();
    env.file("w.json", &before.to_string());
    patches(
        env,
        &["--library", LIBRARY, "malloc=jemalloc", "env.MODE=$(X)"],
    );
    let after = applied(env, "w.json", "p.json").expect("it applies");
    let pod = &after["spec"]["template"]["spec"];
    let library = "/refit/lib/libjemalloc.so.2";
    let preload = &pod["containers"][0]["env"][0];
    assert_eq!(preload["value"], format!("{library}:/own.so"), "{after:#}");
    let side = &pod["containers"][1]["env"];
    assert!(
        side.to_string().contains(library) && side.to_string().contains("$$(X)"),
        "{side}"
    );
    assert_eq!(
        pod["initContainers"][0]["image"],
        "registry.example:5000/allocators:1"
    );
    assert_eq!(pod["volumes"][0]["name"], "data");
    env.file("after.json", &after.to_string());
    let again = applied(env, "after.json", "i.json").expect("it is taken back");
    // The API server leaves empty lists out.
    let empty = ["env", "volumeMounts", "initContainers"].map(|name| format!("\"{name}\":[]"));
    let again = empty.iter().fold(again.to_string(), |text, empty| {
        let text = text.replace(&format!("{empty},"), "");
        text.replace(&format!(",{empty}"), "")
    });
    assert_eq!(again, before.to_string());

    // From stdin to stdout, in each form.
    for form in ["json", "inverse", "merge", "kustomize", "policy"] {
        let mut refit = env.refit_command(&[
            "export",
            "kubernetes",
            "apply",
            "--of",
            "-",
            "--form",
            form,
            "--library",
            LIBRARY,
            "malloc=jemalloc",
        ]);
        let mut refit = refit
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("refit starts");
        let mut input = refit.stdin.take().expect("it is piped");
        input
            .write_all(before.to_string().as_bytes())
            .expect("it reads");
        drop(input);
        let output = refit.wait_with_output().expect("it is our child");
        expect_code(&output, 0);
        let printed: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert!(
            !printed.is_null() && printed.to_string().contains("db"),
            "{form}: {printed}"
        );
    }
    Outcome::Pass
}

fn a_patch_of_what_has_changed_fails(env: &TestEnv) -> Outcome {
    require_jsonpatch(env);
    env.file("w.json", &workload().to_string());
    patches(env, &["--library", LIBRARY, "malloc=jemalloc"]);
    let changed = |pointer: &str, value: Value| {
        let mut object = workload();
        *object.pointer_mut(pointer).expect("it is there") = value;
        fs::write(env.path("changed.json"), object.to_string()).expect("the directory is ours");
        let error = applied(env, "changed.json", "p.json").expect_err("it has changed");
        assert!(error.contains("Test"), "{error}");
    };
    let first = "/spec/template/spec/containers/0";
    changed(&format!("{first}/name"), json!("other"));
    changed(&format!("{first}/env/0/value"), json!("/their.so"));
    Outcome::Pass
}

fn what_a_workload_cannot_have_is_refused(env: &TestEnv) -> Outcome {
    let write = |name: &str, change: fn(&mut Value)| {
        let mut object = workload();
        change(&mut object);
        env.file(name, &object.to_string());
    };
    write("w.json", |_| {});
    write("pod.json", |object| object["kind"] = json!("Pod\u{1b}"));
    write("gvisor.json", |object| {
        object["spec"]["template"]["spec"]["runtimeClassName"] = json!("gvisor")
    });
    write("nowhere.json", |object| {
        object["metadata"] = json!({"name": "db"})
    });
    env.file("text.json", "no JSON");
    let apply = ["export", "kubernetes", "apply", "--of"];
    for (words, texts) in [
        (
            &["w.json", "malloc=jemalloc"][..],
            &["--library IMAGE:/"][..],
        ),
        (
            &["w.json", "disk=4ms"],
            &["disk=", "statefulset/db", "malloc="],
        ),
        (&["w.json", "nothing=1"], &["nothing"]),
        (&["w.json", "thp=never"], &["--refit /usr/bin/refit"]),
        (
            &["w.json", "--refit", "/r", "thp=never"],
            &["container `db`", "its command is that of its image"],
        ),
        (
            &["w.json", "--container", "none", "sync=off"],
            &["`none`", "db, side"],
        ),
        (
            &["gvisor.json", "sync=off"],
            &["gvisor", "kernel of its own"],
        ),
        (&["pod.json", "sync=off"], &["deployment/NAME"]),
        (
            &["text.json", "sync=off"],
            &["text.json is not JSON", "kubectl get"],
        ),
        (
            &["nowhere.json", "--form", "policy", "sync=off"],
            &["namespace and the selector", "kubectl get"],
        ),
        (&["missing.json", "sync=off"], &["cannot read missing.json"]),
        (
            &["w.json", "--library", "image", "malloc=jemalloc"],
            &["--library", "libjemalloc.so.2"],
        ),
        (
            &["w.json", "--seccomp-profile", "../x", "sync=off"],
            &["without `..`"],
        ),
        (&["w.json", "--out", "no/where", "sync=off"], &["no/where"]),
    ] {
        expect_refused(env, &[&apply, words].concat(), texts);
    }
    Outcome::Pass
}
