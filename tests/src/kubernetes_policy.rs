//! `refit export kubernetes apply --form policy`, by the evaluator of Kubernetes 1.36 (tests/admission): the cluster of
//! `scripts/cluster` is older. Only by `make test-kubernetes`.

use std::process::Command;

use serde_json::{Value, json};

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[test!(a_policy_gives_new_pods_what_a_patch_gives)
    .alone()
    .when_named()
    .limit_seconds(1200)];

const LIBRARY: &str = "registry.example/allocators:1:/usr/lib/libjemalloc.so.2";
const IN_PODS: &str = "/refit/lib/libjemalloc.so.2";

fn workload() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [
                    {"name": "app", "image": "i", "command": ["/app", "-x"]},
                    {"name": "own", "image": "i", "command": ["/own"], "env": [{"name": "LD_PRELOAD", "value": "/own.so"}]},
                ]},
            },
        },
    })
}

/// What the policy makes of pods: of the template's as it is, and of those that are changed at these places.
fn created(env: &TestEnv, evaluator: &str, changes: &[(&str, Value)]) -> Vec<Value> {
    let template = workload()["spec"]["template"].clone();
    let mut words = vec![evaluator.to_owned(), env.path("policy.json")];
    for (number, (place, value)) in [("", Value::Null)].iter().chain(changes).enumerate() {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
        if let Some((parent, key)) = place.rsplit_once('/') {
            pod.pointer_mut(parent).expect("it is there")[key] = value.clone();
        }
        words.push(env.file(&format!("pod{number}.json"), &pod.to_string()));
    }
    let output = env.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    expect_code(&output, 0);
    let text = String::from_utf8(output.stdout).expect("it is text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect()
}

fn a_policy_gives_new_pods_what_a_patch_gives(env: &TestEnv) -> Outcome {
    env.require_command("go");
    let evaluator = env.path("admission");
    let mut go = Command::new("go");
    go.args(["build", "-C"])
        .arg(source_dir().join("tests/admission"));
    let built = go
        .args(["-o", &evaluator, "."])
        .output()
        .expect("go starts");
    if String::from_utf8_lossy(&built.stderr).contains("requires go >=") {
        env.skip("needs Go 1.26, as Kubernetes 1.36 does");
    }
    assert!(built.status.success(), "{}", described(&built));
    env.file("w.json", &workload().to_string());
    let words = [
        "export",
        "kubernetes",
        "apply",
        "--of",
        "w.json",
        "--form",
        "policy",
        "--out",
        "policy.json",
        "--library",
        LIBRARY,
        "--refit",
        "/opt/refit",
        "malloc=jemalloc",
        "env.MODE=$(X) \"q\"\\",
        "sync=off",
        "thp=never",
    ];
    expect_code(&env.refit(&words), 0);

    let left_alone = [
        ("/spec/runtimeClassName", json!("gvisor")),
        (
            "/spec/containers/0/securityContext",
            json!({"privileged": true}),
        ),
        (
            "/spec/containers/0/securityContext",
            json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
        ),
        (
            "/spec/securityContext",
            json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}),
        ),
        (
            "/spec/containers/1/env",
            json!([{"name": "LD_PRELOAD", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]),
        ),
        (
            "/spec/containers/1/env",
            json!([{"name": "LD_PRELOAD", "value": IN_PODS}]),
        ),
        ("/spec/containers/1/name", json!("other")),
        ("/spec/containers/0/command", Value::Null),
    ];
    let pods = created(env, &evaluator, &left_alone);
    for (pod, change) in pods[1..].iter().zip(&left_alone) {
        assert_eq!(*pod, Value::Null, "{change:?}");
    }
    let changes = [
        (
            "/spec/initContainers",
            json!([{"name": "first", "image": "i"}]),
        ),
        ("/spec/volumes", json!([{"name": "data", "emptyDir": {}}])),
        (
            "/spec/containers/0/env",
            json!([{"name": "LD_PRELOAD", "value": ""}, {"name": "MODE", "value": "old"}, {"name": "A", "value": "b"}]),
        ),
        (
            "/spec/containers/0/securityContext",
            json!({"runAsUser": 5, "seccompProfile": {"type": "RuntimeDefault"}}),
        ),
    ];
    let pods = created(env, &evaluator, &changes);
    for pod in &pods {
        let [app, own] = [0, 1].map(|index| &pod["spec"]["containers"][index]);
        let value = |of: &Value, name: &str| -> Vec<Value> {
            let all = of["env"].as_array().into_iter().flatten();
            let named = all.filter(|variable| variable["name"] == name);
            named.map(|variable| variable["value"].clone()).collect()
        };
        assert_eq!(value(app, "LD_PRELOAD"), [IN_PODS], "{pod:#}");
        assert_eq!(
            value(own, "LD_PRELOAD"),
            [format!("{IN_PODS}:/own.so")],
            "{pod:#}"
        );
        assert_eq!(value(app, "MODE"), ["$$(X) \"q\"\\"], "{pod:#}");
        assert_eq!(
            app["command"],
            json!([
                "/opt/refit",
                "run",
                "--quiet",
                "thp=never",
                "--",
                "/app",
                "-x"
            ])
        );
        let profile = json!({"type": "Localhost", "localhostProfile": "refit/sync-off.json"});
        assert_eq!(own["securityContext"]["seccompProfile"], profile, "{pod:#}");
        let last = |list: &str| {
            pod["spec"][list]
                .as_array()
                .and_then(|all| all.last())
                .cloned()
        };
        let init = last("initContainers").expect("it has one");
        assert_eq!(
            init["command"],
            json!(["cp", "-L", "/usr/lib/libjemalloc.so.2", IN_PODS])
        );
        assert_eq!(
            last("volumes"),
            Some(json!({"name": "refit-lib", "emptyDir": {}}))
        );
    }
    let spec = |number: usize| &pods[number]["spec"];
    assert_eq!(spec(1)["initContainers"][0]["name"], "first");
    assert_eq!(spec(2)["volumes"][0]["name"], "data");
    assert_eq!(spec(4)["containers"][0]["securityContext"]["runAsUser"], 5);
    println!(
        "counted: {} pods changed, {} left alone",
        pods.len(),
        left_alone.len()
    );
    Outcome::Pass
}
