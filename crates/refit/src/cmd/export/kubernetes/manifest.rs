//! The objects. They are values until a serialiser writes them: no name or word of others can change their shape.

use serde_json::{Map, Value, json};

use crate::cli::{KubernetesCompareArgs, RefitFrom};
use crate::cmd::pool::CONTAINER;

/// The empty directory of a pod, in which it compares.
pub const WORK: &str = "/refit/work";

/// Where the pods find refit that was brought to them.
const BIN: &str = "/refit/bin";

/// Label of every pod that compares, of all Jobs.
const COMPARES: [&str; 2] = ["app.kubernetes.io/name", "refit-compare"];

/// Taints of a node that does not answer. After five minutes, by default, its pods are deleted, and with them the
/// results of those that had completed.
const OUTAGES: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// For as long the pods wait for their node. Later their indexes are started on others.
const OUTAGE_SECONDS: u32 = 3600;

/// A list of all objects. `words` are for `refit compare`.
pub fn manifest(args: &KubernetesCompareArgs, seed: u64, words: &[String]) -> Value {
    let mut items = Vec::new();
    if let (true, Some(namespace)) = (args.create_namespace, &args.namespace) {
        items.push(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace},
        }));
    }
    items.push(json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(args),
        "automountServiceAccountToken": false,
    }));
    items.push(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(args),
        "spec": job(args, seed, words),
    }));
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn metadata(args: &KubernetesCompareArgs) -> Value {
    let mut metadata = json!({"name": args.name, "labels": {COMPARES[0]: COMPARES[1]}});
    if let Some(namespace) = &args.namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

fn job(args: &KubernetesCompareArgs, seed: u64, words: &[String]) -> Value {
    let completions = args.completions.or(args.nodes).unwrap_or(2);
    json!({
        "completionMode": "Indexed",
        "completions": completions,
        // As many as find a node: one that compares takes no second pod.
        "parallelism": completions,
        "backoffLimitPerIndex": args.retries,
        // One index that fails again and again takes no result of another away.
        "maxFailedIndexes": completions,
        "ttlSecondsAfterFinished": args.keep.as_secs(),
        "template": {
            "metadata": {"labels": {COMPARES[0]: COMPARES[1]}},
            "spec": pod(args, seed, words),
        },
    })
}

fn pod(args: &KubernetesCompareArgs, seed: u64, words: &[String]) -> Value {
    let (refit, mut mounts, mut volumes, init) = refit(args);
    mounts.push(json!({"name": "work", "mountPath": WORK}));
    volumes.push(match &args.work_on {
        Some(path) => json!({"name": "work", "hostPath": {"path": path, "type": "Directory"}}),
        None => json!({"name": "work", "emptyDir": {}}),
    });
    let mut pod = json!({
        "restartPolicy": "Never",
        "serviceAccountName": args.name,
        "automountServiceAccountToken": false,
        // Variables of each service of the namespace would be in the environment of what is measured.
        "enableServiceLinks": false,
        "tolerations": OUTAGES.map(|taint| json!({
            "key": taint,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": OUTAGE_SECONDS,
        })),
        "topologySpreadConstraints": [spread(args)],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {COMPARES[0]: COMPARES[1]}},
            "namespaceSelector": {},
        }]}},
        "containers": [{
            "name": CONTAINER,
            "image": args.image,
            "command": command(&refit, seed, words),
            "workingDir": WORK,
            "env": [
                {"name": "REFIT_INDEX", "valueFrom": {"fieldRef": {
                    "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
                }}},
                {"name": "REFIT_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                // An image may have no /tmp.
                {"name": "TMPDIR", "value": WORK},
            ],
            "volumeMounts": mounts,
            "resources": resources(args),
        }],
        "volumes": volumes,
    });
    if let Some(init) = init {
        pod["initContainers"] = json!([init]);
    }
    if !args.node_selector.is_empty() {
        pod["nodeSelector"] = object(&args.node_selector);
    }
    pod
}

/// Over as many nodes as were asked for, or as evenly as can be.
fn spread(args: &KubernetesCompareArgs) -> Value {
    let mut spread = json!({
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": args.name}},
    });
    if args.completions.is_none() {
        spread["whenUnsatisfiable"] = json!("DoNotSchedule");
        spread["minDomains"] = json!(args.nodes.unwrap_or(2));
    }
    spread
}

/// The path of refit in the container; mounts, volumes and the init container that bring it there.
fn refit(args: &KubernetesCompareArgs) -> (String, Vec<Value>, Vec<Value>, Option<Value>) {
    let path = format!("{BIN}/refit");
    match &args.refit_from {
        None => ("refit".to_owned(), Vec::new(), Vec::new(), None),
        Some(RefitFrom::HostPath(host)) => (
            path.clone(),
            vec![json!({"name": "refit", "mountPath": path, "readOnly": true})],
            vec![json!({"name": "refit", "hostPath": {"path": host, "type": "File"}})],
            None,
        ),
        Some(RefitFrom::Image(image)) => {
            let init = json!({
                "name": "refit",
                "image": image,
                "command": ["refit", "export", "kubernetes", "copy-refit", path],
                "volumeMounts": [{"name": "refit", "mountPath": BIN}],
                "resources": resources(args),
            });
            (
                path,
                vec![json!({"name": "refit", "mountPath": BIN, "readOnly": true})],
                vec![json!({"name": "refit", "emptyDir": {}})],
                Some(init),
            )
        }
    }
}

fn command(refit: &str, seed: u64, words: &[String]) -> Vec<String> {
    let own = [
        refit,
        "compare",
        "--seed",
        &format!("{seed}+$(REFIT_INDEX)"),
        "--machine",
        "$(REFIT_NODE)",
        "--log-result",
        "$(REFIT_INDEX)",
    ];
    let own = own.into_iter().map(str::to_owned);
    own.chain(words.iter().map(|word| literal(word))).collect()
}

/// Kubernetes replaces `$(NAME)` in a command, and takes `$$` for one `$`.
fn literal(word: &str) -> String {
    word.replace('$', "$$")
}

fn resources(args: &KubernetesCompareArgs) -> Value {
    let mut resources = Map::new();
    for (name, amounts) in [("requests", &args.request), ("limits", &args.limit)] {
        if !amounts.is_empty() {
            resources.insert(name.to_owned(), object(amounts));
        }
    }
    Value::Object(resources)
}

fn object(pairs: &[(String, String)]) -> Value {
    let pairs = pairs.iter();
    Value::Object(
        pairs
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect(),
    )
}
