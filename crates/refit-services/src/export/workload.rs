//! Settings for a workload of Kubernetes, as a patch of its pod template.
//!
//! The object is read as the cluster has it; the patch names everything that it relies on, so that it fails where the
//! object has changed meanwhile (RFC 6902, `test`). What a container has in `LD_PRELOAD` and `GLIBC_TUNABLES` stays:
//! lists of variables are merged by name, and a plain strategic merge would replace it.

mod error;
mod forms;
mod operations;
mod policy;

use std::ffi::OsStr;

use refit_knobs::{AllocatorKind, Assignment, Ground, Join, Settings, Thp, holds};
use serde_json::{Value, json};

pub use self::error::WorkloadError;
pub use self::policy::{Policy, policy};

/// Where containers find what an init container brought.
const MOUNT: &str = "/refit/lib";
/// Volume, init container.
const NAME: &str = "refit-lib";
/// Where the settings act.
const GROUND: [Ground; 1] = [Ground::Pod];
/// Kinds that make pods, and where each has what its pods are to be.
const KINDS: [(&str, &str); 5] = [
    ("Deployment", TEMPLATE),
    ("StatefulSet", TEMPLATE),
    ("DaemonSet", TEMPLATE),
    ("Job", TEMPLATE),
    ("CronJob", "/spec/jobTemplate/spec/template/spec"),
];
const TEMPLATE: &str = "/spec/template/spec";
/// Runtimes whose kernel is not the node's.
const OWN_KERNELS: [&str; 3] = ["gvisor", "runsc", "kata"];

/// What is wanted of a workload.
pub struct Profile<'a> {
    /// As in a comparison.
    pub settings: &'a Settings,
    /// The image that has the allocator's library, and where in it.
    pub library: Option<Library>,
    /// The file with refit's rules below the kubelet's seccomp directory, for `sync=off`.
    pub seccomp_profile: &'a str,
    /// Where containers have refit, for `thp=never`.
    pub refit: Option<&'a str>,
    /// Only this container.
    pub container: Option<&'a str>,
}

/// A library in an image.
#[derive(Clone, Debug)]
pub struct Library {
    /// The image.
    pub image: String,
    /// Absolute, of a file or a link.
    pub path: String,
}

/// The patch, in all its forms.
#[derive(Debug)]
pub struct WorkloadPatch {
    /// Kind and name: `deployment/web`.
    pub workload: String,
    /// The patched object.
    pub after: Value,
    /// The pointer to what its pods are to be.
    pod: &'static str,
    /// RFC 6902, with tests of what it relies on.
    pub operations: Vec<Value>,
    /// The same backwards.
    pub inverse: Vec<Value>,
    /// What to know of it.
    pub notes: Vec<String>,
}

/// Builds the patch of an object as `kubectl get -o json` prints it.
///
/// # Errors
/// A kind without a pod template, settings that a pod cannot have, and what of the object forbids them.
pub fn patch(object: &Value, profile: &Profile) -> Result<WorkloadPatch, WorkloadError> {
    let kind = object["kind"].as_str().unwrap_or("?");
    let name = object["metadata"]["name"].as_str().unwrap_or("?");
    let workload = format!("{}/{name}", kind.to_lowercase());
    let Some((_, pod)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        return Err(WorkloadError::Kind {
            workload,
            known: KINDS.map(|(kind, _)| kind).join(", "),
        });
    };
    let mut building = Building {
        workload,
        after: object.clone(),
        pod,
        operations: Vec::new(),
        inverse: Vec::new(),
        notes: Vec::new(),
    };
    let wanted = building.wanted(profile)?;
    let chosen = building.containers(profile)?;
    for index in chosen {
        building.container(index, &wanted)?;
    }
    if let (Some(library), false) = (&wanted.library, building.operations.is_empty()) {
        building.bring(library);
    }
    if building.operations.is_empty() {
        return Err(WorkloadError::Nothing(building.workload));
    }
    if kind == "Job" {
        building.notes.push(
            "the API server refuses a change of a Job that exists, so that no operation of kubectl patch applies it: write it into the file that the Job is made from (--form kustomize), or into its CronJob".to_owned(),
        );
    }
    building.inverse.reverse();
    Ok(WorkloadPatch {
        workload: building.workload,
        after: building.after,
        pod,
        operations: building.operations,
        inverse: building.inverse,
        notes: building.notes,
    })
}

/// What each container gets.
#[derive(Default)]
struct Wanted {
    variables: Vec<Assignment>,
    library: Option<Library>,
    seccomp: Option<String>,
    /// Stands before the command.
    launcher: Vec<String>,
}

impl Wanted {
    fn preload(&self) -> Option<&Assignment> {
        self.variables.iter().find(|one| one.name == "LD_PRELOAD")
    }
}

struct Building {
    workload: String,
    after: Value,
    pod: &'static str,
    operations: Vec<Value>,
    inverse: Vec<Value>,
    notes: Vec<String>,
}

impl Building {
    fn wanted(&mut self, profile: &Profile) -> Result<Wanted, WorkloadError> {
        let launch = profile.settings.launch();
        let mut wanted = Wanted::default();
        for setting in &profile.settings.0 {
            if !setting.acts_on(&GROUND) {
                return Err(WorkloadError::Setting {
                    setting: setting.to_string(),
                    workload: self.workload.clone(),
                });
            }
        }
        if let Some(malloc) = &launch.malloc
            && malloc.kind != AllocatorKind::GLIBC
        {
            let library = profile.library.clone().ok_or(WorkloadError::Missing(
                    "an allocator's library has to come from an image with the C library of the containers\n  name it: --library IMAGE:/PATH/libjemalloc.so.2",
                ))?;
            let file = library.path.rsplit('/').next().unwrap_or_default();
            let preload = Assignment::preload(format!("{MOUNT}/{file}"));
            wanted.variables.extend(preload);
            self.notes.push(format!(
                    "what {file} needs (ldd) has to be in the containers' images too: where one of these libraries is missing, nothing starts there; watch the rollout"
                ));
            wanted.library = Some(library);
            self.notes.push(
                    "not covered: static programs, set-id programs, and what is started with a cleared environment; `refit doctor PID` on the node tells who serves malloc".to_owned(),
                );
        }
        wanted.variables.extend(launch.variables());
        if !launch.sync.is_empty() {
            wanted.seccomp = Some(profile.seccomp_profile.to_owned());
            self.notes.push(format!(
                "loses-on-crash: what the pod acknowledged can be gone after a power cut; each node needs the profile {} below /var/lib/kubelet/seccomp (refit export oci sync=off --profile DEFAULT.json --seccomp FILE writes it)",
                profile.seccomp_profile
            ));
        }
        if launch.thp == Some(Thp::Never) {
            let refit = profile.refit.ok_or(WorkloadError::Missing(
                "thp=never needs refit in the containers, which starts their command\n  name its path there: --refit /usr/bin/refit",
            ))?;
            let words = [refit, "run", "--quiet", "thp=never", "--"];
            wanted.launcher = words.map(str::to_owned).into();
        }
        Ok(wanted)
    }

    /// Indexes of those that are wanted.
    fn containers(&self, profile: &Profile) -> Result<Vec<usize>, WorkloadError> {
        let empty = Vec::new();
        let all = self
            .after
            .pointer(self.pod)
            .and_then(|pod| pod["containers"].as_array());
        let names: Vec<&str> = (all.unwrap_or(&empty).iter())
            .map(|container| container["name"].as_str().unwrap_or("?"))
            .collect();
        let Some(wanted) = profile.container else {
            return Ok((0..names.len()).collect());
        };
        match names.iter().position(|name| *name == wanted) {
            Some(index) => Ok(vec![index]),
            None => Err(WorkloadError::NoContainer {
                workload: self.workload.clone(),
                container: wanted.to_owned(),
                known: names.join(", "),
            }),
        }
    }

    fn container(&mut self, index: usize, wanted: &Wanted) -> Result<(), WorkloadError> {
        let at = format!("{}/containers/{index}", self.pod);
        let container = self.get(&at);
        let name = container["name"].as_str().unwrap_or("?").to_owned();
        let before = self.operations.len();
        for assignment in &wanted.variables {
            let is_new = self.variable(&at, &name, assignment)?;
            if is_new && assignment.name == "LD_PRELOAD" {
                let mount = json!({"name": NAME, "mountPath": MOUNT, "readOnly": true});
                self.append(&at, "volumeMounts", mount);
            }
        }
        if let Some(profile) = &wanted.seccomp {
            self.seccomp(&at, &name, profile)?;
        }
        if !wanted.launcher.is_empty() {
            self.launcher(&at, &name, &wanted.launcher)?;
        }
        // The list's order may change; without this another container would be patched.
        if self.operations.len() > before {
            let test = json!({"op": "test", "path": format!("{at}/name"), "value": name});
            self.operations.insert(before, test.clone());
            self.inverse.push(test);
        }
        Ok(())
    }

    /// Whether it was not there yet.
    fn variable(
        &mut self,
        at: &str,
        container: &str,
        assignment: &Assignment,
    ) -> Result<bool, WorkloadError> {
        let Assignment { name, join, .. } = assignment;
        let value = literal(&assignment.value);
        let Some((index, found)) = self.variable_at(at, name) else {
            self.append(at, "env", json!({"name": name, "value": value}));
            return Ok(true);
        };
        if found.get("valueFrom").is_some() {
            return Err(self.refused(container, format!(
                "{name} comes from elsewhere (valueFrom), and would be replaced\n  change it there, or leave the container out: --container NAME"
            )));
        }
        // The API server leaves an empty value out.
        let there = found["value"].as_str().unwrap_or_default();
        if holds(name, there, &value) {
            return Ok(false);
        }
        let ours = Assignment {
            value,
            ..assignment.clone()
        };
        if !there.is_empty() {
            let becomes = match join {
                Join::Replace => "that is replaced",
                Join::Before => "that stays, after what is added",
                Join::After => "that stays, before what is added",
            };
            self.notes.push(format!(
                "container `{container}` has {name}={there} already: {becomes}"
            ));
        }
        let whole = ours.onto(Some(OsStr::new(there)));
        let new = json!({"name": name, "value": whole.to_string_lossy()});
        self.replace(&format!("{at}/env/{index}"), new);
        Ok(true)
    }

    /// Of the container, so that no other one of the pod loses its profile.
    fn seccomp(&mut self, at: &str, container: &str, profile: &str) -> Result<(), WorkloadError> {
        let pod = self.get(self.pod);
        let runtime = pod["runtimeClassName"].as_str().unwrap_or_default();
        if OWN_KERNELS.iter().any(|own| runtime.contains(own)) {
            return Err(self.refused(container, format!(
                "runtimeClassName `{runtime}` has a kernel of its own, which takes no seccomp profile of the node: sync=off would not be in effect\n  run it with the node's runtime, or leave sync=off out"
            )));
        }
        let context = self.get(&format!("{at}/securityContext"));
        if context["privileged"] == true {
            return Err(self.refused(container, "it is privileged, and such containers run without any seccomp profile: sync=off would not be in effect\n  leave sync=off out".to_owned()));
        }
        let wanted = json!({"type": "Localhost", "localhostProfile": profile});
        let own = [
            &context["seccompProfile"],
            &pod["securityContext"]["seccompProfile"],
        ];
        let found = own.into_iter().find(|found| !found.is_null());
        match found {
            Some(found) if *found == wanted && context["seccompProfile"] == wanted => return Ok(()),
            Some(found) if found["type"] == "Localhost" => {
                let file = found["localhostProfile"].as_str().unwrap_or("?").to_owned();
                return Err(self.refused(container, format!(
                    "it has the seccomp profile {file}, which would be replaced\n  add refit's rules to that file: refit export oci sync=off --profile FILE --seccomp NEW"
                )));
            }
            _ => {}
        }
        if context.is_null() {
            let new = json!({"seccompProfile": wanted});
            self.add(&format!("{at}/securityContext"), new);
        } else if context["seccompProfile"].is_null() {
            self.add(&format!("{at}/securityContext/seccompProfile"), wanted);
        } else {
            self.replace(&format!("{at}/securityContext/seccompProfile"), wanted);
        }
        Ok(())
    }

    fn launcher(
        &mut self,
        at: &str,
        container: &str,
        words: &[String],
    ) -> Result<(), WorkloadError> {
        let command = self.get(&format!("{at}/command"));
        let Some(own) = command.as_array().filter(|own| !own.is_empty()) else {
            return Err(self.refused(container, "its command is that of its image, which the workload does not tell; thp=never needs it\n  write `command:` into the workload, or set it in the image".to_owned()));
        };
        if own.len() > words.len() && own.iter().zip(words).all(|(a, b)| a == b) {
            return Ok(());
        }
        let all = words
            .iter()
            .map(|word| json!(word))
            .chain(own.iter().cloned());
        let new = Value::Array(all.collect());
        self.replace(&format!("{at}/command"), new);
        Ok(())
    }

    /// The library: an init container copies it into an empty directory.
    fn bring(&mut self, library: &Library) {
        let file = library.path.rsplit('/').next().unwrap_or_default();
        let init = json!({
            "name": NAME,
            "image": library.image,
            "command": ["cp", "-L", library.path, format!("{MOUNT}/{file}")],
            "volumeMounts": [{"name": NAME, "mountPath": MOUNT}],
        });
        self.append(self.pod, "initContainers", init);
        self.append(self.pod, "volumes", json!({"name": NAME, "emptyDir": {}}));
    }

    fn refused(&self, container: &str, why: String) -> WorkloadError {
        WorkloadError::Refused {
            container: container.to_owned(),
            workload: self.workload.clone(),
            why,
        }
    }
}

/// Kubernetes replaces `$(NAME)` in a value, and takes `$$` for one `$`.
fn literal(value: &str) -> String {
    value.replace('$', "$$")
}

#[cfg(test)]
mod tests;
