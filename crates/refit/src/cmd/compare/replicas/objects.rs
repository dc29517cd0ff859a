//! The objects of a comparison, as values: no name or word of others can change their shape.

use serde_json::{Map, Value, json};

/// Label of all of them.
pub const LABEL: [&str; 2] = ["app.kubernetes.io/name", "refit-compare"];
/// The Job that owns the others, and the account without rights.
pub const OWNER: &str = "refit-compare";
/// The only container of a load.
pub const LOADS: &str = "load";
/// A node's name, as a pod asks for it.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// The Job of the comparison is deleted this long after its time, and all that it owns with it.
const KEPT_SECONDS: u64 = 60;

/// The namespace, before anything else.
pub fn namespace(name: &str, of: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {LABEL[0]: LABEL[1]}, "annotations": {"refit/compares": of}},
    })
}

/// A Job without pods: the server ends it after this time, deletes it a minute later, and with it what it owns.
pub fn owner(seconds: u64) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": OWNER, "labels": {LABEL[0]: LABEL[1]}},
        "spec": {
            "parallelism": 0,
            "completions": 1,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "none", "image": "none"}],
            }},
        },
    })
}

/// Who owns what, by the owner's uid.
pub fn owned(mut object: Value, uid: &str) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": OWNER,
        "uid": uid,
    }]);
    object
}

/// The account of all pods: without rights and without a token.
pub fn account() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": OWNER, "labels": {LABEL[0]: LABEL[1]}},
        "automountServiceAccountToken": false,
    })
}

/// What pods of the workload read, in a namespace where it is not.
pub fn copied(object: &Value) -> Value {
    let mut copy = Map::new();
    for part in [
        "apiVersion",
        "kind",
        "data",
        "binaryData",
        "stringData",
        "type",
    ] {
        if let Some(value) = object.get(part) {
            copy.insert(part.to_owned(), value.clone());
        }
    }
    copy.insert(
        "metadata".to_owned(),
        json!({"name": object["metadata"]["name"], "labels": {LABEL[0]: LABEL[1]}}),
    );
    Value::Object(copy)
}

/// One replica of a pod template, on the node with this host name. It is not started again where it ends.
pub fn replica(name: &str, template: &Value, hostname: &str) -> Value {
    let mut spec = template["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    spec["serviceAccountName"] = json!(OWNER);
    spec["automountServiceAccountToken"] = json!(false);
    spec["terminationGracePeriodSeconds"] = json!(1);
    spec["nodeSelector"][HOSTNAME] = json!(hostname);
    if let Some(spec) = spec.as_object_mut() {
        // Another name of serviceAccountName, and nothing in this namespace is to be disturbed.
        for gone in ["serviceAccount", "topologySpreadConstraints"] {
            spec.remove(gone);
        }
    }
    let mut labels = template["metadata"]["labels"].clone();
    labels[LABEL[0]] = json!(LABEL[1]);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": template["metadata"]["annotations"],
        },
        "spec": spec,
    })
}

/// What a load is, beside the replica that it is for.
#[derive(Clone, Debug)]
pub struct Load {
    pub image: String,
    pub command: String,
    pub seconds: u64,
}

/// Prints a mark, runs the command, prints the mark again with its exit code.
const AROUND: &str = "echo \"$0 begin\"; sh -c \"$1\"; code=$?; echo \"$0 end $code\"; exit $code";

/// The load on one replica, on its node.
pub fn load(name: &str, load: &Load, mark: &str, host: &str, port: &str, hostname: &str) -> Value {
    // Kubernetes replaces `$(NAME)` in a command, and takes `$$` for one `$`.
    let command = ["sh", "-c", AROUND, mark, &load.command].map(|word| word.replace('$', "$$"));
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {LABEL[0]: LABEL[1]}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": load.seconds,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {
                "metadata": {"labels": {LABEL[0]: LABEL[1]}},
                "spec": {
                    "restartPolicy": "Never",
                    "serviceAccountName": OWNER,
                    "automountServiceAccountToken": false,
                    "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 1,
                    "nodeSelector": {HOSTNAME: hostname},
                    "containers": [{
                        "name": LOADS,
                        "image": load.image,
                        "command": command,
                        "env": [
                            {"name": "REFIT_HOST", "value": host},
                            {"name": "REFIT_PORT", "value": port},
                        ],
                    }],
                },
            },
        },
    })
}
