//! One replica of the Deployment and one load on it: made, measured and removed.

use refit_knobs::Settings;
use refit_lab::{Loaded, ReplicaError};
use serde_json::Value;

use super::source::Node;
use super::{KubernetesReplicas, log_times, objects};
use crate::cmd::kubectl::KubectlError;

/// For the start of a replica, its image and its readiness included.
const READY_SECONDS: u64 = 300;
/// Where a patch puts libraries.
const LIBRARIES: &str = "/refit/lib/";
/// A container that cannot start tells so by one of these.
const STUCK: [&str; 8] = [
    "ErrImagePull",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "CrashLoopBackOff",
];
/// The proportional memory of all processes but the shell's own; code 3 where one cannot be read.
const READ_PSS: &str = "for one in /proc/[0-9]*; do [ \"$one\" = \"/proc/$$\" ] || cat \"$one/smaps_rollup\" || \
    [ ! -d \"$one\" ] || exit 3; done";

/// One replica and its load.
pub struct Run<'a> {
    pub replica: String,
    pub load: String,
    pub node: &'a Node,
    pub owner: String,
    pub of: &'a KubernetesReplicas,
}

fn failed(error: KubectlError) -> ReplicaError {
    ReplicaError::Failed(error.to_string())
}

impl Run<'_> {
    pub fn made(&self, settings: &Settings) -> Result<Loaded, ReplicaError> {
        let never = |error: anyhow::Error| ReplicaError::Never(format!("{error:#}"));
        let template = self.of.template(settings).map_err(never)?;
        self.create(objects::replica(
            &self.replica,
            &template,
            &self.node.hostname,
        ))?;
        let address = self.address()?;
        self.check_libraries(&template)?;
        // The log's own lines are told from these by it.
        let mark = format!(
            "refit-{:016x}",
            crate::cli::new_seed() << 32 | crate::cli::new_seed()
        );
        let load = objects::load(
            &self.load,
            &self.of.load,
            &mark,
            &address,
            &self.of.source.port,
            &self.node.hostname,
        );
        self.create(load)?;
        let load_ns = self.loaded(&mark)?;
        Ok(Loaded {
            load_ns,
            pss_bytes: self.pss(),
        })
    }

    fn create(&self, object: Value) -> Result<(), ReplicaError> {
        let object = objects::owned(object, &self.owner);
        let create = ["create", "--filename=-"];
        let made = self.of.inside.given(&create, Some(&object));
        made.map(drop).map_err(failed)
    }

    /// Of the replica, when it is ready.
    fn address(&self) -> Result<String, ReplicaError> {
        let mut last = "it was not seen".to_owned();
        let pod = format!("pod/{}", self.replica);
        let ready = self.of.inside.watch(&["get", &pod], READY_SECONDS, |pod| {
            let status = &pod["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            for one in conditions {
                if one["type"] == "Ready" && one["status"] == "True" {
                    let address = status["podIP"].as_str().unwrap_or_default();
                    return Some(Ok(address.to_owned()));
                }
                if one["status"] == "False"
                    && let Some(message) = one["message"].as_str()
                {
                    message.clone_into(&mut last);
                }
            }
            ended(status).map(Err)
        });
        match ready.map_err(failed)? {
            Some(Ok(address)) => Ok(address),
            Some(Err(why)) => Err(ReplicaError::Failed(format!(
                "the replica did not start: {why}"
            ))),
            None => Err(ReplicaError::Failed(format!(
                "the replica was not ready in {READY_SECONDS} s: {last}"
            ))),
        }
    }

    /// Whether each container that preloads a library has it.
    fn check_libraries(&self, template: &Value) -> Result<(), ReplicaError> {
        let containers = template["spec"]["containers"].as_array();
        for container in containers.into_iter().flatten() {
            let variables = container["env"].as_array().into_iter().flatten();
            let preload = variables
                .filter(|one| one["name"] == "LD_PRELOAD")
                .filter_map(|one| one["value"].as_str())
                .flat_map(|value| value.split(':'))
                .find(|library| library.starts_with(LIBRARIES));
            let Some(library) = preload else { continue };
            let name = container["name"].as_str().unwrap_or_default();
            let maps = self.inside(name, &["cat", "/proc/1/maps"]);
            let maps = maps.map_err(|error| {
                ReplicaError::Never(format!(
                    "not in effect, as far as is known: the maps of container `{name}` cannot be read ({error})"
                ))
            })?;
            if !String::from_utf8_lossy(&maps).contains(library) {
                return Err(ReplicaError::Never(format!(
                    "not in effect: process 1 of container `{name}` has not loaded {library}"
                )));
            }
        }
        Ok(())
    }

    fn inside(&self, container: &str, words: &[&str]) -> Result<Vec<u8>, KubectlError> {
        let pod = format!("pod/{}", self.replica);
        let exec = ["exec", &pod, "--container", container, "--"];
        self.of.inside.run(&[&exec, words].concat())
    }

    /// How long the load took, by its own lines in its log.
    fn loaded(&self, mark: &str) -> Result<u64, ReplicaError> {
        let selector = format!("batch.kubernetes.io/job-name={}", self.load);
        let words = ["get", "pods", "--selector", &selector];
        let seconds = self.of.load.seconds.saturating_add(READY_SECONDS);
        let end = self.of.inside.watch(&words, seconds, |pod| {
            let status = &pod["status"];
            match status["phase"].as_str() {
                Some("Succeeded") => Some(Ok(())),
                _ => ended(status).map(Err),
            }
        });
        let job = format!("job/{}", self.load);
        let words = ["logs", &job, "--timestamps", "--container", objects::LOADS];
        match end.map_err(failed)? {
            Some(Ok(())) => {}
            Some(Err(why)) => {
                let log = self.of.inside.run(&words).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).into_owned();
                let told = log_times::last_line(&log, mark)
                    .map_or(String::new(), |line| format!(": {line}"));
                return Err(ReplicaError::Failed(format!(
                    "the load failed: {why}{told}"
                )));
            }
            None => {
                return Err(ReplicaError::Failed(format!(
                    "the load did not end in {seconds} s"
                )));
            }
        }
        let log = self.of.inside.run(&words).map_err(failed)?;
        log_times::between(&String::from_utf8_lossy(&log), mark).map_err(|why| {
            ReplicaError::Failed(format!("the time of the load is not known: {why}"))
        })
    }

    /// Memory of the container; a container may have no shell to read it by.
    fn pss(&self) -> Option<u64> {
        let shell = ["sh", "-c", READ_PSS];
        let text = self.inside(&self.of.source.container, &shell).ok()?;
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter_map(|line| line.strip_prefix("Pss:"));
        let kib = lines.map(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.sum::<Option<u64>>()
            .filter(|kib| *kib > 0)
            .map(|kib| kib * 1024)
    }

    /// Both, so that nothing of them runs beside the next.
    pub fn remove(&self) -> Result<(), ReplicaError> {
        let [pod, job] = [
            format!("pod/{}", self.replica),
            format!("job/{}", self.load),
        ];
        let delete = ["delete", &pod, &job, "--ignore-not-found", "--timeout=50s"];
        self.of.inside.run(&delete).map(drop).map_err(failed)
    }
}

/// Why a pod will not succeed, as soon as that is known.
fn ended(status: &Value) -> Option<String> {
    let lists = ["initContainerStatuses", "containerStatuses"].map(|list| status[list].as_array());
    for one in lists.into_iter().flatten().flatten() {
        let name = one["name"].as_str().unwrap_or("?");
        let state = &one["state"];
        let waiting = state["waiting"]["reason"].as_str();
        if let Some(reason) = waiting.filter(|reason| STUCK.contains(reason)) {
            let message = state["waiting"]["message"].as_str().unwrap_or_default();
            return Some(format!("container `{name}`: {reason} {message}"));
        }
        let terminated = &state["terminated"];
        let code = terminated["exitCode"].as_i64().filter(|code| *code != 0);
        if let Some(code) = code {
            let reason = terminated["reason"].as_str().unwrap_or_default();
            let message = terminated["message"].as_str().unwrap_or_default();
            return Some(format!(
                "container `{name}`: {reason}, exit code {code} {message}"
            ));
        }
    }
    match status["phase"].as_str() {
        Some(phase @ ("Failed" | "Succeeded")) => {
            let reason = status["reason"].as_str().unwrap_or_default();
            Some(format!("it ended: {phase} {reason}"))
        }
        _ => None,
    }
}
