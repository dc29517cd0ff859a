//! What `refit export kubernetes apply` gives real pods: a musl allocator, a seccomp profile, no huge pages. Only by
//! `make test-kubernetes`.

use serde_json::{Value, json};

use crate::cluster::{
    cluster, export_of, kubectl, object, patched, put_profile_of_sync_off, rolled_out, wait_for,
};
use crate::compared::list;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(an_image_with_musl_takes_an_allocator_of_its_own)
        .alone()
        .when_named()
        .limit_seconds(600),
    test!(a_pod_does_not_sync_and_has_no_huge_pages)
        .alone()
        .when_named()
        .limit_seconds(600),
];

const MUSL: &str = "docker.io/local/musl:1";
const PERL: &str = "docker.io/local/perl:1";

/// One pod of this container.
fn deployed(env: &TestEnv, name: &str, container: &Value, volumes: &Value) {
    let labels = json!({"app": name});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], "volumes": volumes},
            },
        },
    });
    let manifest = env.file(&format!("{name}.json"), &deployment.to_string());
    kubectl(env, &["apply", "-f", &manifest]);
    alone(env, name);
}

/// Until there is one pod of it, which is of the newest template.
fn alone(env: &TestEnv, name: &str) {
    rolled_out(env, "default", name);
    wait_for(env, "one pod and no other", || {
        (pods(env, name).len() == 1).then_some(())
    });
}

fn pods(env: &TestEnv, name: &str) -> Vec<Value> {
    let selector = format!("app={name}");
    let pods = object(env, &["pods", "-l", &selector]);
    list(&pods["items"]).clone()
}

/// What a command prints in its container.
fn inside(env: &TestEnv, name: &str, words: &[&str]) -> String {
    let deployment = format!("deployment/{name}");
    kubectl(env, &[&["exec", &deployment, "--"], words].concat())
}

/// The patch and what takes it back, as files.
fn patches(env: &TestEnv, name: &str, settings: &[&str]) -> [String; 2] {
    let deployment = format!("deployment/{name}");
    let object = object(env, &[&deployment]);
    let object = env.file("object.json", &object.to_string());
    ["json", "inverse"].map(|form| {
        let file = env.path(&format!("{form}.patch"));
        let words = export_of(&object, form, &file);
        expect_code(&env.refit(&[&words[..], settings].concat()), 0);
        file
    })
}

fn an_image_with_musl_takes_an_allocator_of_its_own(env: &TestEnv) -> Outcome {
    let container = json!({"name": "app", "image": MUSL, "command": ["/bin/allocates"]});
    deployed(env, "musl", &container, &json!([]));
    let maps = |env| inside(env, "musl", &["cat", "/proc/1/maps"]);
    assert!(maps(env).contains("musl") && !maps(env).contains("libarena"));
    let from = format!("{MUSL}:/lib/libarena.so");
    let own = ["--library", &from, "malloc=/lib/libarena.so"];
    let [patch, inverse] = patches(env, "musl", &own);
    patched(env, "default", "musl", &patch);
    alone(env, "musl");
    assert!(
        maps(env).contains("/refit/lib/libarena.so"),
        "{}",
        maps(env)
    );
    patched(env, "default", "musl", &inverse);
    alone(env, "musl");
    assert!(!maps(env).contains("libarena"), "{}", maps(env));

    // One of glibc does not start there, and the old pod serves on.
    let from = format!("{PERL}:/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0");
    let [patch, inverse] = patches(env, "musl", &["--library", &from, "malloc=mimalloc"]);
    let old = pods(env, "musl")[0]["metadata"]["uid"].clone();
    patched(env, "default", "musl", &patch);
    wait_for(env, "pod that does not start", || {
        let pods = pods(env, "musl");
        let mut new = pods.iter().filter(|pod| pod["metadata"]["uid"] != old);
        let state = |pod: &Value| {
            pod.pointer("/status/containerStatuses/0/restartCount")
                .cloned()
        };
        new.any(|pod| state(pod).is_some_and(|count| count.as_u64() > Some(0)))
            .then_some(())
    });
    let mut serving = pods(env, "musl")
        .into_iter()
        .filter(|pod| pod["metadata"]["uid"] == old);
    assert!(serving.any(|pod| pod["status"]["phase"] == "Running"));
    patched(env, "default", "musl", &inverse);
    alone(env, "musl");
    assert_eq!(pods(env, "musl")[0]["metadata"]["uid"], old);
    kubectl(env, &["delete", "deployment/musl", "--now"]);
    Outcome::Pass
}

fn a_pod_does_not_sync_and_has_no_huge_pages(env: &TestEnv) -> Outcome {
    put_profile_of_sync_off(env);
    expect_code(&cluster(env, &["put", &refit_path()]), 0);
    let container = json!({
        "name": "app",
        "image": PERL,
        "command": ["perl", "-e", "sleep 1 while 1"],
        "volumeMounts": [{"name": "refit", "mountPath": "/opt/refit", "readOnly": true}],
    });
    let volumes = json!([{"name": "refit", "hostPath": {"path": "/opt/refit", "type": "File"}}]);
    deployed(env, "plain", &container, &volumes);
    // fsync of no descriptor, and move_pages of no page, which the runtime's own profile forbids.
    let calls = [
        "perl",
        "-e",
        "print join ' ', syscall(74, -1), syscall(279, (0) x 6)",
    ];
    let huge = ["sh", "-c", "grep THP_enabled /proc/1/status"];
    let before = [inside(env, "plain", &calls), inside(env, "plain", &huge)];
    assert_eq!(before[0], "-1 0");
    assert!(before[1].ends_with("1\n"), "{before:?}");
    let object = kubectl(env, &["get", "deployment/plain", "-o", "jsonpath={.spec}"]);
    let settings = ["--refit", "/opt/refit", "sync=off", "thp=never"];
    let [patch, inverse] = patches(env, "plain", &settings);
    patched(env, "default", "plain", &patch);
    alone(env, "plain");
    assert_eq!(inside(env, "plain", &calls), "0 -1");
    let after = inside(env, "plain", &huge);
    assert!(after.ends_with("0\n"), "{after}");
    patched(env, "default", "plain", &inverse);
    alone(env, "plain");
    assert_eq!(
        [inside(env, "plain", &calls), inside(env, "plain", &huge)],
        before
    );
    assert_eq!(
        kubectl(env, &["get", "deployment/plain", "-o", "jsonpath={.spec}"]),
        object
    );
    kubectl(env, &["delete", "deployment/plain", "--now"]);
    Outcome::Pass
}
