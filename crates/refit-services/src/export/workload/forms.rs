//! The forms of a patch beside the list of operations.

use serde_json::{Value, json};

use super::{NAME, WorkloadPatch};

impl WorkloadPatch {
    /// As a strategic merge: lists of containers, variables, mounts and volumes are merged by name.
    #[must_use]
    pub fn strategic(&self) -> Value {
        let pod = self.after.pointer(self.pod).cloned().unwrap_or_default();
        let touched = |place: &str| {
            let mut places = self.operations.iter().filter(|op| op["op"] != "test");
            let below = format!("{place}/");
            places.any(|op| {
                let path = op["path"].as_str().unwrap_or_default();
                path == place || path.starts_with(&below)
            })
        };
        let mut containers = Vec::new();
        for (index, container) in pod["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let at = format!("{}/containers/{index}", self.pod);
            if !touched(&at) {
                continue;
            }
            let mut patch = json!({"name": container["name"]});
            for list in ["env", "volumeMounts"] {
                let all = container[list].as_array().into_iter().flatten().enumerate();
                let is_new = touched(&format!("{at}/{list}"));
                let new = all.filter(|(index, _)| {
                    is_new
                        && (touched(&format!("{at}/{list}/{index}"))
                            || self.is_added(&format!("{at}/{list}")))
                });
                let new: Vec<Value> = new.map(|(_, value)| value.clone()).collect();
                if !new.is_empty() {
                    patch[list] = Value::Array(new);
                }
            }
            if touched(&format!("{at}/command")) {
                patch["command"] = container["command"].clone();
            }
            if touched(&format!("{at}/securityContext")) {
                let profile = container["securityContext"]["seccompProfile"].clone();
                patch["securityContext"] = json!({"seccompProfile": profile});
            }
            containers.push(patch);
        }
        let mut template = json!({"containers": containers});
        for list in ["initContainers", "volumes"] {
            let all = pod[list].as_array().into_iter().flatten();
            let ours = all.filter(|value| value["name"] == NAME);
            let ours: Vec<Value> = ours.cloned().collect();
            if touched(&format!("{}/{list}", self.pod)) {
                template[list] = Value::Array(ours);
            }
        }
        let mut patch = json!({
            "apiVersion": self.after["apiVersion"],
            "kind": self.after["kind"],
            "metadata": {"name": self.after["metadata"]["name"]},
        });
        let keys = self.pod.split('/').skip(1);
        let mut place = &mut patch;
        for key in keys {
            place = &mut place[key];
        }
        *place = template;
        patch
    }

    /// A whole list was added, and not a part of one.
    fn is_added(&self, path: &str) -> bool {
        self.operations
            .iter()
            .any(|op| op["op"] == "add" && op["path"] == path)
    }

    /// A component of kustomize, with the strategic merge in it.
    #[must_use]
    pub fn component(&self) -> Value {
        let patch = self.strategic();
        json!({
            "apiVersion": "kustomize.config.k8s.io/v1alpha1",
            "kind": "Component",
            "patches": [{
                "target": {"kind": patch["kind"], "name": patch["metadata"]["name"]},
                "patch": patch.to_string(),
            }],
        })
    }
}
