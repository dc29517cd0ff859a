//! `refit export kubernetes apply` on the real cluster of `scripts/cluster`. Only by `make test-kubernetes`.

use serde_json::{Value, json};

use crate::cluster::{export_of, kubectl, object, patched, rolled_out, wait_for};
use crate::compared::list;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};

pub const TESTS: &[Test] = &[test!(an_allocator_is_rolled_out_and_taken_back)
    .alone()
    .when_named()
    .limit_seconds(600)];

const NAMESPACE: &str = "profiled";
const IMAGE: &str = "docker.io/local/perl:1";
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0";
/// What a container preloads by itself.
const OWN: &str = "/lib/x86_64-linux-gnu/libcrypt.so.1";

fn in_namespace(env: &TestEnv, words: &[&str]) -> String {
    kubectl(env, &[&["--namespace", NAMESPACE], words].concat())
}

/// Three pods of two containers, one of which preloads a library of its own.
fn deployment() -> Value {
    let command = json!(["perl", "-e", "sleep 1 while 1"]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [
                        {"name": "app", "image": IMAGE, "command": command},
                        {
                            "name": "own",
                            "image": IMAGE,
                            "command": command,
                            "env": [{"name": "LD_PRELOAD", "value": OWN}],
                        },
                    ],
                },
            },
        },
    })
}

/// What the first process of this container has mapped, in each of the three pods.
fn maps(env: &TestEnv, container: &str) -> Vec<String> {
    rolled_out(env, NAMESPACE, "web");
    let names = wait_for(env, "three pods and no other", || {
        let pods = in_namespace(env, &["get", "pods", "-o", "name"]);
        let names: Vec<String> = pods.lines().map(str::to_owned).collect();
        (names.len() == 3).then_some(names)
    });
    let read = |name: &String| {
        in_namespace(
            env,
            &["exec", name, "-c", container, "--", "cat", "/proc/1/maps"],
        )
    };
    names.iter().map(read).collect()
}

fn of_cluster(env: &TestEnv) -> Value {
    let object = object(env, &["deployment/web", "--namespace", NAMESPACE]);
    env.file("web.json", &object.to_string());
    object
}

fn an_allocator_is_rolled_out_and_taken_back(env: &TestEnv) -> Outcome {
    kubectl(env, &["create", "namespace", NAMESPACE]);
    let manifest = env.file("deployment.json", &deployment().to_string());
    kubectl(env, &["apply", "-f", &manifest]);
    let library = "/refit/lib/libmimalloc.so.2.0";
    let has =
        |maps: &[String], library: &str| maps.iter().filter(|maps| maps.contains(library)).count();
    let [app, own] = ["app", "own"].map(|container| maps(env, container));
    assert_eq!([has(&app, library), has(&own, library)], [0, 0]);
    assert_eq!(has(&own, OWN), 3, "{own:?}");

    let before = of_cluster(env);
    let from = format!("{IMAGE}:{LIBRARY}");
    for (form, file) in [
        ("json", "patch.json"),
        ("inverse", "back.json"),
        ("merge", "merge.json"),
    ] {
        let words = export_of("web.json", form, file);
        let settings = ["--library", &from, "malloc=mimalloc", "env.MODE=$(X)"];
        expect_code(&env.refit(&[&words[..], &settings].concat()), 0);
    }
    // The strategic merge comes to the same.
    let dry = |kind: &str, file: &str| -> Value {
        let path = env.path(file);
        let words = [
            "patch",
            "deployment/web",
            kind,
            "--patch-file",
            &path,
            "--dry-run=server",
            "-o",
            "json",
        ];
        let mut object: Value =
            serde_json::from_str(&in_namespace(env, &words)).expect("it is JSON");
        object["spec"].take()
    };
    assert_eq!(
        dry("--type=json", "patch.json"),
        dry("--type=strategic", "merge.json")
    );

    patched(env, NAMESPACE, "web", &env.path("patch.json"));
    let [app, own] = ["app", "own"].map(|container| maps(env, container));
    assert_eq!(
        [has(&app, library), has(&own, library)],
        [3, 3],
        "{app:?} {own:?}"
    );
    assert_eq!(has(&own, OWN), 3, "{own:?}");
    let pod = in_namespace(env, &["get", "pods", "-o", "name"]);
    let first = pod.lines().next().expect("there are three");
    let mode = in_namespace(
        env,
        &[
            "exec",
            first,
            "-c",
            "app",
            "--",
            "sh",
            "-c",
            "echo \"$MODE\"",
        ],
    );
    assert_eq!(mode.trim(), "$(X)");
    // Twice is refused, and so is what has changed meanwhile.
    let again = of_cluster(env);
    assert!(
        list(&again["spec"]["template"]["spec"]["initContainers"]).len() == 1,
        "{again:#}"
    );
    let words = [
        "export",
        "kubernetes",
        "apply",
        "--of",
        "web.json",
        "--library",
        &from,
    ];
    let output = env.refit(&[&words[..], &["malloc=mimalloc"]].concat());
    expect_message(&output, 2, "nothing to do");

    patched(env, NAMESPACE, "web", &env.path("back.json"));
    let [app, own] = ["app", "own"].map(|container| maps(env, container));
    assert_eq!([has(&app, library), has(&own, library)], [0, 0]);
    assert_eq!(has(&own, OWN), 3, "{own:?}");
    assert_eq!(of_cluster(env)["spec"], before["spec"]);
    kubectl(env, &["delete", "namespace", NAMESPACE, "--timeout=120s"]);
    println!("counted: 3 pods of 2 containers");
    Outcome::Pass
}
