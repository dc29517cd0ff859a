//! `refit compare --on kubernetes` on the real cluster of `scripts/cluster`. Only by `make test-kubernetes`.

use std::fs;

use serde_json::{Value, json};

use crate::cluster::{kubectl, object, program, put_profile_of_sync_off, rolled_out, wait_for};
use crate::compared::{list, messages, number};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_refused};

pub const TESTS: &[Test] = &[
    test!(replicas_of_a_server_are_compared_and_nothing_is_left)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(nothing_is_left_when_refit_is_killed)
        .alone()
        .when_named()
        .limit_seconds(300),
];

const IMAGE: &str = "docker.io/local/redis:1";
const LIBRARY: &str = "docker.io/local/redis:1:/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0";
const CONFIGURATION: &str =
    "protected-mode no\ndir /data\nsave \"\"\nappendonly yes\nappendfsync always\n";
const LOAD: &str = "redis-benchmark -h $REFIT_HOST -p $REFIT_PORT -t set -n 500 -c 1 -q >/dev/null";
/// What a server makes besides pods and Jobs is in a namespace of its own.
const OURS: &str = "app.kubernetes.io/name=refit-compare";

const ON: [&str; 4] = ["compare", "--on", "kubernetes", "deployment/redis"];

/// Redis, which syncs each write, on the node with a disk.
fn redis(env: &TestEnv) {
    let name = json!({"name": "redis"});
    let configuration = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": name, "data": {"redis.conf": CONFIGURATION},
    });
    let container = json!({
        "name": "app",
        "image": IMAGE,
        "command": ["redis-server", "/conf/redis.conf"],
        "ports": [{"containerPort": 6379}],
        "readinessProbe": {"tcpSocket": {"port": 6379}, "periodSeconds": 1},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "conf", "mountPath": "/conf"}],
    });
    let pod = json!({
        "nodeSelector": {"kubernetes.io/hostname": "node1"},
        "terminationGracePeriodSeconds": 0,
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": name}],
        "containers": [container],
    });
    let labels = json!({"app": "redis"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": name,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [configuration, deployment]});
    let manifest = env.file("redis.json", &list.to_string());
    kubectl(env, &["apply", "-f", &manifest]);
    rolled_out(env, "default", "redis");
}

/// The Deployment and its pod: neither may have changed.
fn of_cluster(env: &TestEnv) -> String {
    let versions = "jsonpath={.metadata.generation} {.spec}";
    let uid = "jsonpath={.items[*].metadata.uid}";
    [
        kubectl(env, &["get", "deployment/redis", "-o", versions]),
        kubectl(env, &["get", "pods", "-l", "app=redis", "-o", uid]),
    ]
    .join("\n")
}

fn ours(env: &TestEnv) -> String {
    let namespaces = ["get", "namespaces", "-o", "name"];
    let namespaces = kubectl(env, &namespaces);
    let namespaces: Vec<&str> = namespaces
        .lines()
        .filter(|name| name.contains("refit-compare"))
        .collect();
    let kinds = "pods,jobs,serviceaccounts,configmaps";
    let all = kubectl(env, &["get", kinds, "-A", "-l", OURS, "-o", "name"]);
    [namespaces.join("\n"), all].concat()
}

fn replicas_of_a_server_are_compared_and_nothing_is_left(env: &TestEnv) -> Outcome {
    redis(env);
    put_profile_of_sync_off(env);
    let own = program(env, "kubectl", "");
    let before = of_cluster(env);
    let on = [&ON[..], &["--kubectl", &own]].concat();
    let options = [
        "--library",
        LIBRARY,
        "--rounds",
        "6",
        "--budget",
        "8m",
        "--load",
    ];
    let files = ["--json", "r.json", "--html", "r.html"];
    let words = ["sync=off+malloc=mimalloc"];
    let output = env.refit(&[&on, &words[..], &options, &[LOAD], &files].concat());
    expect_code(&output, 0);
    assert_eq!(ours(env), "", "{}", described(&output));
    assert_eq!(of_cluster(env), before, "the Deployment has changed");
    expect_message(&output, 0, "copied into it: configmap/redis");

    let text = fs::read_to_string(env.path("r.json")).expect("it was written");
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    crate::schema::expect_valid(&result);
    assert_eq!(result["recipe"]["replicas"]["nodes"], json!(["node1"]));
    assert_eq!(result["environment"]["fixed"]["machine"], "node1");
    let runs = list(&result["runs"]);
    // The warm-up and three round pairs of baseline, candidate and hidden baseline.
    assert_eq!(runs.len(), 24, "{}", described(&output));
    for run in runs {
        assert_eq!(run["failure"], Value::Null, "{run:#}");
        let pss = number(&run["load"]["values"]["pss"]);
        assert!((1e6..1e9).contains(&pss), "{run:#}");
    }
    let of_load = |effect: &&Value| effect["metric"] == "load" && effect["variant"] == 1;
    let effect = list(&result["effects"]).iter().find(of_load);
    let change = number(&effect.expect("it is there")["change"]);
    assert!(change < -0.3, "{change}: {}", described(&output));
    let page = fs::read_to_string(env.path("r.html")).expect("it was written");
    assert!(!page.contains("Memory at the end"), "panels without values");
    // Nothing of this machine passes for the cluster's.
    let metrics = list(&result["effects"])
        .iter()
        .map(|one| one["metric"].as_str());
    assert!(
        metrics
            .flatten()
            .all(|name| ["load", "pss"].contains(&name))
    );

    // A load that fails, and what a Deployment must not have.
    let failing = [&on, &["env.A=1", "--load", "echo told >&2; exit 3"][..]].concat();
    let output = env.refit(&failing);
    for text in [
        "the baseline failed: the load failed",
        "exit code 3",
        "told",
    ] {
        expect_message(&output, 2, text);
    }
    assert_eq!(ours(env), "");
    for (words, texts) in [
        (
            &["disk=4ms", "--load", "true"][..],
            &["disk=", "malloc="][..],
        ),
        (
            &["malloc=mimalloc", "--load", "true"],
            &["--library IMAGE:/"],
        ),
        (
            &["sync=off", "--load", "true", "--container", "none"],
            &["no container `none`", "app"],
        ),
    ] {
        expect_refused(env, &[&on, words].concat(), texts);
    }
    let stranger = program(env, "kubectl-of-nobody", "--as=nobody");
    let words = [&ON[..], &["sync=off", "--load", "true", "--kubectl"]].concat();
    expect_refused(
        env,
        &[&words[..], &[&stranger]].concat(),
        &["(Forbidden)", "auth can-i --list"],
    );
    // Who may read it, and may not make a namespace.
    let read = [
        "create",
        "clusterrolebinding",
        "reads",
        "--clusterrole=view",
        "--user=reader",
    ];
    kubectl(env, &read);
    let nodes = [
        "create",
        "clusterrole",
        "nodes",
        "--verb=get",
        "--resource=nodes",
    ];
    kubectl(env, &nodes);
    kubectl(
        env,
        &[
            "create",
            "clusterrolebinding",
            "nodes",
            "--clusterrole=nodes",
            "--user=reader",
        ],
    );
    let reader = program(env, "kubectl-of-reader", "--as=reader");
    let output = env.refit(&[&words[..], &[&reader]].concat());
    for text in ["(Forbidden)", "rights to create and delete a namespace"] {
        expect_message(&output, 2, text);
    }
    kubectl(
        env,
        &[
            "delete",
            "clusterrolebinding/reads",
            "clusterrolebinding/nodes",
            "clusterrole/nodes",
        ],
    );
    kubectl(env, &["delete", "-f", "redis.json", "--now"]);
    println!("counted: {} runs, {change}", runs.len());
    Outcome::Pass
}

fn nothing_is_left_when_refit_is_killed(env: &TestEnv) -> Outcome {
    redis(env);
    let own = program(env, "kubectl", "");
    let before = of_cluster(env);
    let options = ["env.A=1", "--kubectl", &own, "--load", "sleep 600"];
    let words = [&ON[..], &options].concat();
    let mut refit = env.refit_command(&words);
    let mut refit = refit
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("refit starts");
    // In the middle of a load.
    wait_for(env, "load on a replica", || {
        let words = [
            "get",
            "pods",
            "-A",
            "-l",
            OURS,
            "-o",
            "jsonpath={range .items[*]}{.metadata.name} {.status.phase},{end}",
        ];
        let pods = kubectl(env, &words);
        let is_loaded = |pod: &str| pod.starts_with("load-") && pod.ends_with("Running");
        pods.split(',').any(is_loaded).then_some(())
    });
    // The server would remove all of it too, in its time.
    let kinds = "pods,jobs,configmaps,serviceaccounts";
    let owned = object(env, &[kinds, "-A", "-l", OURS]);
    let mut without = list(&owned["items"]).iter().filter(|object| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        !owners.is_some_and(|owners| owners.iter().any(|owner| owner["kind"] == "Job"))
    });
    let owner = without.next().expect("the Job that owns all");
    assert_eq!(owner["metadata"]["name"], "refit-compare");
    assert_eq!(without.next(), None);
    assert_eq!(owner["spec"]["ttlSecondsAfterFinished"], 60);
    assert_eq!(owner["spec"]["activeDeadlineSeconds"], 30 * 60);
    refit.kill().expect("it is our child");
    let output = refit.wait_with_output().expect("it is our child");
    wait_for(env, "end of the namespace", || {
        ours(env).is_empty().then_some(())
    });
    assert!(
        !messages(&output).contains("may be left"),
        "{}",
        described(&output)
    );
    assert_eq!(of_cluster(env), before, "the Deployment has changed");
    kubectl(env, &["delete", "-f", "redis.json", "--now"]);
    Outcome::Pass
}
