//! The same settings as a MutatingAdmissionPolicy: the API server gives them to each new pod of the workload, which
//! itself stays as it is (KEP-3962; `admissionregistration.k8s.io/v1` of Kubernetes 1.36, `v1beta1` of 1.34 and 1.35).
//!
//! The expressions look at the pod as it comes: a pod that has what the patch would refuse is left alone. Parts that
//! are merged (ApplyConfiguration) keep what is there; commands are lists that cannot be merged (JSONPatch).

use refit_knobs::Join;
use serde_json::{Value, json};

use super::{Building, MOUNT, NAME, OWN_KERNELS, Profile, Wanted, WorkloadError, patch};

/// The policy with its binding, and what to know of it.
#[derive(Debug)]
pub struct Policy {
    /// A list of both.
    pub objects: Value,
    /// As for a patch.
    pub notes: Vec<String>,
}

/// Builds it for the pods of an object as `kubectl get -o json` prints it.
///
/// # Errors
/// As [`patch`], and an object without a namespace or a selector.
pub fn policy(object: &Value, profile: &Profile) -> Result<Policy, WorkloadError> {
    let patched = patch(object, profile)?;
    let namespace = object["metadata"]["namespace"].as_str();
    let selector = &object["spec"]["selector"];
    if object["kind"] == "CronJob" {
        return Err(WorkloadError::Missing(
            "a policy finds the pods by the selector of the workload, and each Job of a CronJob has one of its own\n  patch the CronJob itself: its next Job has the settings",
        ));
    }
    let (Some(namespace), false) = (namespace, selector.is_null()) else {
        return Err(WorkloadError::Missing(
            "a policy finds the pods by the namespace and the selector of the workload, and it has none\n  read it from the cluster: kubectl get deployment/NAME -o json",
        ));
    };
    let mut building = Building {
        workload: patched.workload.clone(),
        after: object.clone(),
        pod: patched.pod,
        operations: Vec::new(),
        inverse: Vec::new(),
        notes: Vec::new(),
    };
    let wanted = building.wanted(profile)?;
    let names: Vec<String> = (building.containers(profile)?.iter())
        .map(|index| building.get(&format!("{}/containers/{index}/name", patched.pod)))
        .map(|name| name.as_str().unwrap_or_default().to_owned())
        .collect();
    let name = format!(
        "refit-{namespace}-{}",
        object["metadata"]["name"].as_str().unwrap_or("?")
    );
    let version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            // A pod without the settings does less harm than no pod.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "objectSelector": selector,
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }],
            },
            "matchConditions": conditions(&wanted, &names),
            "mutations": mutations(&wanted, &names),
        },
    });
    let binding = json!({
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    });
    let mut notes = patched.notes;
    notes.push(
        "the policy is for Kubernetes 1.36 or newer (1.34 and 1.35 have v1beta1, where it is enabled); a pod that it cannot change is made without the settings"
            .to_owned(),
    );
    Ok(Policy {
        objects: json!({"apiVersion": "v1", "kind": "List", "items": [policy, binding]}),
        notes,
    })
}

/// Text as an expression: what JSON escapes, CEL reads.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn list(names: &[String]) -> String {
    let all: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", all.join(", "))
}

/// What a pod has to be like; otherwise it is left alone.
fn conditions(wanted: &Wanted, names: &[String]) -> Vec<Value> {
    let all = list(names);
    let ours = |what: &str| format!("object.spec.containers.all(c, !(c.name in {all}) || {what})");
    let variables: Vec<String> = (wanted.variables.iter())
        .map(|one| one.name.clone())
        .collect();
    let mut conditions = vec![(
        "has-the-containers",
        format!("{all}.all(n, object.spec.containers.exists(c, c.name == n))"),
    )];
    if let Some(preload) = wanted.preload() {
        let library = quoted(&preload.value);
        conditions.push((
            "has-not-the-library",
            format!(
                "(!has(object.spec.volumes) || !object.spec.volumes.exists(v, v.name == \"{NAME}\")) && {}",
                ours(&format!("!has(c.env) || !c.env.exists(e, e.name == \"LD_PRELOAD\" && has(e.value) && e.value.contains({library}))"))
            ),
        ));
    }
    if !variables.is_empty() {
        conditions.push((
            "has-no-variable-from-elsewhere",
            ours(&format!(
                "!has(c.env) || !c.env.exists(e, e.name in {} && has(e.valueFrom))",
                list(&variables)
            )),
        ));
    }
    if wanted.seccomp.is_some() {
        conditions.push((
            "has-the-kernel-of-the-node",
            format!(
                "!has(object.spec.runtimeClassName) || !object.spec.runtimeClassName.matches(\"{}\")",
                OWN_KERNELS.join("|")
            ),
        ));
        let own = "!has(c.securityContext) || ((!has(c.securityContext.privileged) || !c.securityContext.privileged) && \
            (!has(c.securityContext.seccompProfile) || c.securityContext.seccompProfile.type != \"Localhost\"))";
        conditions.push(("has-no-own-profile", ours(own)));
        let of_pod = "!has(object.spec.securityContext) || !has(object.spec.securityContext.seccompProfile) || \
            object.spec.securityContext.seccompProfile.type != \"Localhost\"";
        conditions.push(("has-no-own-profile-of-the-pod", of_pod.to_owned()));
    }
    if !wanted.launcher.is_empty() {
        conditions.push((
            "has-a-command",
            ours("(has(c.command) && size(c.command) > 0)"),
        ));
    }
    let condition = |(name, expression)| json!({"name": name, "expression": expression});
    conditions.into_iter().map(condition).collect()
}

fn mutations(wanted: &Wanted, names: &[String]) -> Vec<Value> {
    let mut mutations = Vec::new();
    let containers: Vec<String> = names
        .iter()
        .filter_map(|name| merged(wanted, name))
        .collect();
    if !containers.is_empty() {
        let mut parts = vec![format!("containers: [{}]", containers.join(", "))];
        if wanted.library.is_some() {
            parts.push(format!(
                "volumes: [Object.spec.volumes{{name: \"{NAME}\", emptyDir: Object.spec.volumes.emptyDir{{}}}}]"
            ));
        }
        mutations.push(json!({
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {
                "expression": format!("Object{{spec: Object.spec{{{}}}}}", parts.join(", ")),
            },
        }));
    }
    let mut patches = Vec::new();
    if let Some(library) = &wanted.library {
        let file = library.path.rsplit('/').next().unwrap_or_default();
        let command = ["cp", "-L", &library.path, &format!("{MOUNT}/{file}")].map(str::to_owned);
        let init = format!(
            "Object.spec.initContainers{{name: \"{NAME}\", image: {}, command: {}, volumeMounts: [Object.spec.initContainers.volumeMounts{{name: \"{NAME}\", mountPath: \"{MOUNT}\"}}]}}",
            quoted(&library.image),
            list(&command)
        );
        // An empty list first: of a list of objects, API servers of 1.36 make a panic.
        patches.push(format!(
            "(has(object.spec.initContainers) ? [] : [JSONPatch{{op: \"add\", path: \"/spec/initContainers\", value: []}}]) + [JSONPatch{{op: \"add\", path: \"/spec/initContainers/-\", value: {init}}}]"
        ));
    }
    if !wanted.launcher.is_empty() {
        let words = list(&wanted.launcher);
        let each = names.iter().map(|name| {
            let name = quoted(name);
            format!(
                "JSONPatch{{op: \"replace\", path: \"/spec/containers/\" + string(object.spec.containers.map(c, c.name).indexOf({name})) + \"/command\", value: {words} + object.spec.containers.filter(c, c.name == {name})[0].command}}"
            )
        });
        let each: Vec<String> = each.collect();
        patches.push(format!("[{}]", each.join(", ")));
    }
    if !patches.is_empty() {
        mutations.push(json!({
            "patchType": "JSONPatch",
            "jsonPatch": {"expression": patches.join(" + ")},
        }));
    }
    mutations
}

/// The part of a container that is merged.
fn merged(wanted: &Wanted, container: &str) -> Option<String> {
    let name = quoted(container);
    let mut parts = Vec::new();
    let variables: Vec<String> = (wanted.variables.iter())
        .map(|assignment| {
            let variable = quoted(&assignment.name);
            let ours = quoted(&super::literal(&assignment.value));
            let there = format!(
                "object.spec.containers.filter(c, c.name == {name} && has(c.env)).map(c, c.env.filter(e, e.name == {variable} && has(e.value) && e.value != \"\"))"
            );
            let is_there = format!("{there}.exists(l, size(l) > 0)");
            let value = match assignment.join {
                Join::Replace => ours,
                Join::Before => format!("{ours} + ({is_there} ? \":\" + {there}[0][0].value : \"\")"),
                Join::After => format!("({is_there} ? {there}[0][0].value + \":\" : \"\") + {ours}"),
            };
            format!("Object.spec.containers.env{{name: {variable}, value: {value}}}")
        })
        .collect();
    if wanted.preload().is_some() {
        parts.push(format!(
            "volumeMounts: [Object.spec.containers.volumeMounts{{name: \"{NAME}\", mountPath: \"{MOUNT}\", readOnly: true}}]"
        ));
    }
    if !variables.is_empty() {
        parts.push(format!("env: [{}]", variables.join(", ")));
    }
    if let Some(profile) = &wanted.seccomp {
        parts.push(format!(
            "securityContext: Object.spec.containers.securityContext{{seccompProfile: Object.spec.containers.securityContext.seccompProfile{{type: \"Localhost\", localhostProfile: {}}}}}",
            quoted(profile)
        ));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "Object.spec.containers{{name: {name}, {}}}",
            parts.join(", ")
        )
    })
}
