//! The Deployment whose replicas are compared, as the cluster has it. It is only read.

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::cmd::kubectl::{Kubectl, KubectlError};

/// What is known of it.
#[derive(Debug)]
pub struct Source {
    /// `deployment/web`.
    pub name: String,
    /// The object.
    pub object: Value,
    /// Where its pods run, by name and by the label that a pod asks for.
    pub nodes: Vec<Node>,
    /// ConfigMaps and Secrets that its pods read.
    pub read: Vec<Value>,
    /// The container whose memory is read.
    pub container: String,
    /// Its image.
    pub image: String,
    /// Its first port.
    pub port: String,
}

/// A machine of the cluster.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub hostname: String,
    pub kernel: String,
    pub runtime: String,
}

const TEMPLATE: &str = "/spec/template/spec";

impl Source {
    /// Reads it; `word` is what was typed.
    pub fn read(kubectl: &Kubectl, word: &str, container: Option<&str>) -> Result<Source> {
        let failed = |error| failure(kubectl, word, error);
        let object = kubectl.value(&["get", word]).map_err(failed)?;
        let pod = object
            .pointer(TEMPLATE)
            .with_context(|| format!("what kubectl printed is not {word}"))?;
        refuse(word, pod)?;
        let all: Vec<&Value> = pod["containers"].as_array().into_iter().flatten().collect();
        let names: Vec<&str> = all.iter().filter_map(|one| one["name"].as_str()).collect();
        let chosen = match container {
            None => all.first(),
            Some(name) => all.iter().find(|one| one["name"] == name),
        };
        let chosen = chosen.ok_or_else(|| {
            anyhow!(
                "{word} has no container `{}`; it has {}",
                container.unwrap_or_default(),
                names.join(", ")
            )
        })?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let port = &chosen["ports"][0]["containerPort"];
        let (container, image) = (text(&chosen["name"]), text(&chosen["image"]));
        let port = port.as_u64().map_or(String::new(), |port| port.to_string());
        let mut read = Vec::new();
        for name in references(pod) {
            match kubectl.value(&["get", &name]) {
                Ok(object) => read.push(object),
                // It may be optional; otherwise the pod tells what it waits for.
                Err(error) if error.has("(NotFound)") => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Source {
            name: word.to_owned(),
            nodes: nodes(kubectl, word, &object)?,
            read,
            container,
            image,
            port,
            object,
        })
    }
}

/// The nodes on which its pods run now: others may not be able to run them.
fn nodes(kubectl: &Kubectl, word: &str, object: &Value) -> Result<Vec<Node>> {
    let failed = |error| failure(kubectl, word, error);
    let labels = object.pointer("/spec/selector/matchLabels");
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let selector: Vec<String> = labels
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    if selector.is_empty() {
        bail!("{word} selects its pods by no label, and cannot be compared");
    }
    let pods = kubectl
        .value(&["get", "pods", "--selector", &selector.join(",")])
        .map_err(failed)?;
    let pods = pods["items"].as_array().into_iter().flatten();
    let running = pods.filter(|pod| pod["status"]["phase"] == "Running");
    let names: BTreeSet<&str> = running
        .filter_map(|pod| pod["spec"]["nodeName"].as_str())
        .collect();
    if names.is_empty() {
        bail!(
            "{word} has no pod that runs, and replicas are compared where it runs\n  see why: {} get pods --selector {}",
            kubectl.typed(),
            selector.join(",")
        );
    }
    let node = |name: &&str| {
        let node = kubectl
            .value(&["get", &format!("node/{name}")])
            .map_err(failed)?;
        let text = |at: &str| node.pointer(at).and_then(Value::as_str).map(str::to_owned);
        let info = |key: &str| text(&format!("/status/nodeInfo/{key}")).unwrap_or_default();
        Ok(Node {
            name: (*name).to_owned(),
            hostname: text("/metadata/labels/kubernetes.io~1hostname")
                .unwrap_or_else(|| (*name).to_owned()),
            kernel: info("kernelVersion"),
            runtime: info("containerRuntimeVersion"),
        })
    };
    names.iter().map(node).collect()
}

/// What a second pod of it would take from the first, or write into.
fn refuse(word: &str, pod: &Value) -> Result<()> {
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        let name = volume["name"].as_str().unwrap_or("?");
        if volume.get("persistentVolumeClaim").is_some() || volume.get("ephemeral").is_some() {
            bail!(
                "{word}: its volume `{name}` is persistent, and replicas of a comparison must not write into it\n  compare a Deployment of the same image with an emptyDir"
            );
        }
        if volume.get("hostPath").is_some() && !is_read_only(pod, name) {
            bail!(
                "{word}: its volume `{name}` is a directory of the node, and replicas of a comparison must not write into it\n  mount it read-only, or compare a Deployment with an emptyDir"
            );
        }
    }
    let containers = pod["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|one| one["ports"].as_array().into_iter().flatten());
    if pod["hostNetwork"] == true || ports.any(|port| port["hostPort"].as_u64().is_some()) {
        bail!(
            "{word}: its pods take ports of their node, and a second one would find them taken\n  compare a Deployment without hostNetwork and hostPort"
        );
    }
    Ok(())
}

fn is_read_only(pod: &Value, volume: &str) -> bool {
    let lists = ["containers", "initContainers"].map(|list| pod[list].as_array());
    let containers = lists.into_iter().flatten().flatten();
    let mut mounts =
        containers.flat_map(|one| one["volumeMounts"].as_array().into_iter().flatten());
    mounts.all(|mount| mount["name"] != volume || mount["readOnly"] == true)
}

/// ConfigMaps and Secrets by the places where a pod names them, as `configmap/NAME`.
fn references(pod: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |kind: &str, name: &Value| {
        // Each namespace has this one.
        if let Some(name) = name.as_str().filter(|name| *name != "kube-root-ca.crt") {
            found.insert(format!("{kind}/{name}"));
        }
    };
    fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
        of[name].as_array().into_iter().flatten()
    }
    for secret in list(pod, "imagePullSecrets") {
        add("secret", &secret["name"]);
    }
    for volume in list(pod, "volumes") {
        add("configmap", &volume["configMap"]["name"]);
        add("secret", &volume["secret"]["secretName"]);
        for part in list(&volume["projected"], "sources") {
            add("configmap", &part["configMap"]["name"]);
            add("secret", &part["secret"]["name"]);
        }
    }
    for container in list(pod, "containers").chain(list(pod, "initContainers")) {
        for from in list(container, "envFrom") {
            add("configmap", &from["configMapRef"]["name"]);
            add("secret", &from["secretRef"]["name"]);
        }
        for variable in list(container, "env") {
            add(
                "configmap",
                &variable["valueFrom"]["configMapKeyRef"]["name"],
            );
            add("secret", &variable["valueFrom"]["secretKeyRef"]["name"]);
        }
    }
    found
}

/// What kubectl printed, and what to type next.
fn failure(kubectl: &Kubectl, word: &str, error: KubectlError) -> anyhow::Error {
    let typed = kubectl.typed();
    let next = if error.has("(Forbidden)") {
        format!(
            "it needs get of deployments, nodes, and of the configmaps and secrets that the pods read, list of pods, and all on a namespace of its own: {typed} auth can-i --list"
        )
    } else if error.has("(NotFound)") {
        format!("{typed} get deployments lists them; --namespace NAME reads another namespace")
    } else if matches!(error, KubectlError::Failed { .. }) {
        format!("see whether the cluster answers: {typed} get {word}")
    } else {
        return error.into();
    };
    anyhow!("{error}\n  {next}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_places_where_a_pod_names_a_configmap_or_a_secret_are_known() {
        let pod = json!({
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"name": "a", "configMap": {"name": "files"}},
                {"name": "b", "secret": {"secretName": "keys"}},
                {"name": "c", "projected": {"sources": [{"configMap": {"name": "part"}}, {"secret": {"name": "half"}}]}},
                {"name": "d", "emptyDir": {}},
            ],
            "initContainers": [{"envFrom": [{"configMapRef": {"name": "first"}}]}],
            "containers": [{
                "envFrom": [{"secretRef": {"name": "all"}}],
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "a"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "two", "key": "b"}}},
                    {"name": "C", "value": "secret/none"},
                ],
            }],
        });
        let all: Vec<String> = references(&pod).into_iter().collect();
        assert_eq!(
            all,
            [
                "configmap/files",
                "configmap/first",
                "configmap/one",
                "configmap/part",
                "secret/all",
                "secret/half",
                "secret/keys",
                "secret/pull",
                "secret/two",
            ]
        );
    }

    #[test]
    fn what_a_second_pod_would_disturb_is_refused() {
        for pod in [
            json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}]}),
            json!({"volumes": [{"name": "data", "hostPath": {"path": "/srv"}}],
                "containers": [{"volumeMounts": [{"name": "data"}]}]}),
            json!({"hostNetwork": true}),
            json!({"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]}),
        ] {
            assert!(refuse("deployment/web", &pod).is_err(), "{pod}");
        }
        let read = json!({"volumes": [{"name": "zone", "hostPath": {"path": "/etc/localtime"}}],
            "containers": [{"volumeMounts": [{"name": "zone", "readOnly": true}], "ports": [{"containerPort": 80}]}]});
        assert!(refuse("deployment/web", &read).is_ok());
    }
}
