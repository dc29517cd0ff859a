//! Replicas of a Deployment of Kubernetes, each with a load on it. The Deployment itself is only read.

mod log_times;
mod namespace;
mod objects;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use refit_knobs::{Settings, Variant};
use refit_lab::experiment::{Direction, LoadMetricRecord, LoadUnit, ReplicasRecord};
use refit_lab::{LOAD, Loaded, PSS, ReplicaError, Replicas};
use refit_recipe::RecipeRecord;
use refit_services::export::workload::{Library, Profile, WorkloadError, patch};
use serde_json::Value;

pub use self::namespace::remove_at_end;

use self::namespace::Namespace;
use self::objects::Load;
use self::source::{Node, Source};
use crate::cli::CompareArgs;
use crate::cmd::kubectl::{Kubectl, KubectlError};
use crate::cmd::print;

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

/// What was typed.
pub fn replicas(
    args: &CompareArgs,
    word: &str,
    candidates: &[Variant],
    with: &Settings,
    budget: Duration,
) -> Result<Arc<dyn Replicas>> {
    let of = &args.replicas;
    let kubectl = |namespace| Kubectl::new(&of.kubectl, of.context.as_deref(), namespace);
    let source = Source::read(
        &kubectl(of.namespace.as_deref()),
        word,
        of.container.as_deref(),
    )?;
    let name = format!("refit-compare-{:08x}", crate::cli::new_seed());
    let replicas = KubernetesReplicas {
        inside: kubectl(Some(&name)),
        load: Load {
            image: of
                .load_image
                .clone()
                .unwrap_or_else(|| source.image.clone()),
            command: of.load.clone().unwrap_or_default(),
            seconds: budget.as_secs().max(60),
        },
        library: of.library.clone(),
        seccomp_profile: of.seccomp_profile.clone(),
        name,
        source,
        budget,
        state: Mutex::default(),
    };
    // What cannot be had is told before anything is made.
    for candidate in candidates {
        replicas.template(&with.join(candidate.settings()))?;
    }
    replicas.say();
    Ok(Arc::new(replicas))
}

/// Options that have no meaning elsewhere.
pub fn refuse(args: &CompareArgs) -> Result<()> {
    let here = [
        ("--bare", args.bare),
        ("--heap", args.heap),
        ("--memory", args.memory),
        ("--prove", args.prove),
        ("--log-result", args.log_result.is_some()),
        ("--allocator-dir", args.allocator_dir.is_some()),
        ("--yes", args.yes),
    ];
    let given = here.into_iter().find(|(_, is_given)| *is_given);
    let given = given
        .map(|(option, _)| option)
        .or_else(|| args.each_run.given());
    if let Some(option) = given {
        bail!("{option} is for programs of this machine\n  leave it out with --on kubernetes");
    }
    if !args.reach.words().is_empty() {
        bail!(
            "{}: a patch reaches replicas, and no backend\n  leave it out with --on kubernetes",
            args.reach.words()[0]
        );
    }
    if !args.command.is_empty() {
        bail!(
            "with --on kubernetes the replicas run their own command\n  leave out `-- …`; the load is --load COMMAND"
        );
    }
    Ok(())
}

/// The word that names the Deployment.
pub fn subject(args: &CompareArgs) -> Result<&str> {
    let word = args.variants.first().and_then(|word| word.to_str());
    let name = word.and_then(|word| word.strip_prefix("deployment/"));
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    match name {
        Some(name) if !name.is_empty() && name.bytes().all(is_plain) => {
            Ok(word.unwrap_or_default())
        }
        _ => bail!(
            "invalid name of a Deployment: {}\n  write it first: refit compare --on kubernetes deployment/NAME VARIANT… --load COMMAND",
            word.unwrap_or("nothing")
        ),
    }
}

#[derive(Debug)]
struct KubernetesReplicas {
    /// Asks in the namespace of the comparison.
    inside: Kubectl,
    name: String,
    source: Source,
    load: Load,
    library: Option<Library>,
    seccomp_profile: String,
    budget: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Made with the first replica.
    namespace: Option<Namespace>,
    pairs: usize,
    runs: usize,
}

impl Replicas for KubernetesReplicas {
    fn record(&self) -> RecipeRecord {
        let metric = |name: &str, unit, about: &str| LoadMetricRecord {
            name: name.to_owned(),
            unit,
            better: Direction::Less,
            about: about.to_owned(),
        };
        RecipeRecord {
            name: self.source.name.clone(),
            folder: None,
            question: String::new(),
            unit: "load".to_owned(),
            replicas: Some(ReplicasRecord {
                on: "kubernetes".to_owned(),
                load: self.load.command.clone(),
                nodes: self
                    .source
                    .nodes
                    .iter()
                    .map(|node| node.name.clone())
                    .collect(),
            }),
            is_service: true,
            keeps_service: false,
            has_promise: false,
            metrics: vec![
                metric(
                    LOAD,
                    LoadUnit::Nanoseconds,
                    "from the start of the load to its end",
                ),
                metric(
                    PSS,
                    LoadUnit::Bytes,
                    "proportional memory of the replica's processes after the load (smaps_rollup)",
                ),
            ],
            series: Vec::new(),
            why: BTreeMap::new(),
            applies_to: None,
            health: None,
            applied: BTreeMap::new(),
            packages: BTreeMap::new(),
            ddl: BTreeMap::new(),
            is_exact: false,
            note: None,
            then: BTreeMap::new(),
        }
    }

    fn fixed(&self) -> BTreeMap<String, String> {
        let all = |of: fn(&Node) -> &String| {
            let mut all: Vec<&str> = self
                .source
                .nodes
                .iter()
                .map(|node| of(node).as_str())
                .collect();
            all.dedup();
            all.join(", ")
        };
        [
            ("machine", all(|node| &node.name)),
            ("kernel", all(|node| &node.kernel)),
            ("container runtime", all(|node| &node.runtime)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    fn next_pair(&self) {
        self.state().pairs += 1;
    }

    fn run(&self, settings: &Settings) -> Result<Loaded, ReplicaError> {
        let mut state = self.state();
        if state.namespace.is_none() {
            let made = Namespace::create(
                &self.inside,
                &self.name,
                &self.source.name,
                &self.source.read,
                self.budget,
            );
            state.namespace =
                Some(made.map_err(|error| ReplicaError::Ended(format!("{error:#}")))?);
        }
        let owner = state
            .namespace
            .as_ref()
            .map_or(String::new(), |made| made.owner.clone());
        state.runs += 1;
        // The pair that runs is counted already.
        let node = &self.source.nodes[state.pairs.saturating_sub(1) % self.source.nodes.len()];
        let run = Run {
            replica: format!("replica-{}", state.runs),
            load: format!("load-{}", state.runs),
            node,
            owner,
            of: self,
        };
        let loaded = run.made(settings);
        let removed = run.remove();
        let loaded = loaded?;
        removed?;
        Ok(loaded)
    }
}

impl KubernetesReplicas {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pod template with these settings.
    fn template(&self, settings: &Settings) -> Result<Value> {
        let template = |object: &Value| {
            let template = object.pointer("/spec/template").cloned();
            template.with_context(|| format!("{} has no pod template", self.source.name))
        };
        if settings.0.is_empty() {
            return template(&self.source.object);
        }
        let profile = Profile {
            settings,
            library: self.library.clone(),
            seccomp_profile: &self.seccomp_profile,
            refit: None,
            container: None,
        };
        match patch(&self.source.object, &profile) {
            Ok(patched) => template(&patched.after),
            Err(WorkloadError::Nothing(_)) => bail!(
                "{} has {settings} already: that is its baseline\n  leave this variant out",
                self.source.name
            ),
            Err(error) => Err(error.into()),
        }
    }

    /// What is made, and what replicas reach.
    fn say(&self) {
        let nodes: Vec<&str> = (self.source.nodes.iter())
            .map(|node| node.name.as_str())
            .collect();
        print::say(format_args!(
            "replicas of {} on {}, in the namespace {}, which is deleted at the end; what they connect to is real, as their variables and files are those of {0}",
            self.source.name,
            nodes.join(", "),
            self.name
        ));
        let copied: Vec<String> = (self.source.read.iter())
            .map(|object| {
                let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
                format!(
                    "{}/{}",
                    text(&object["kind"]).to_lowercase(),
                    text(&object["metadata"]["name"])
                )
            })
            .collect();
        if !copied.is_empty() {
            print::say(format_args!("copied into it: {}", copied.join(", ")));
        }
    }
}

/// One replica and its load.
struct Run<'a> {
    replica: String,
    load: String,
    node: &'a Node,
    owner: String,
    of: &'a KubernetesReplicas,
}

fn failed(error: KubectlError) -> ReplicaError {
    ReplicaError::Failed(error.to_string())
}

impl Run<'_> {
    fn made(&self, settings: &Settings) -> Result<Loaded, ReplicaError> {
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
    fn remove(&self) -> Result<(), ReplicaError> {
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
