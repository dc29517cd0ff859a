//! Replicas of a Deployment of Kubernetes, each with a load on it. The Deployment itself is only read.

mod log_times;
mod namespace;
mod objects;
mod run;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use refit_knobs::{Settings, Variant};
use refit_lab::experiment::ReplicasRecord;
use refit_lab::{Loaded, ReplicaError, Replicas};
use refit_services::export::workload::{Library, Profile, WorkloadError, patch};
use serde_json::Value;

pub use self::namespace::remove_at_end;

use self::namespace::Namespace;
use self::objects::Load;
use self::run::Run;
use self::source::{Node, Source};
use crate::cli::CompareArgs;
use crate::cmd::kubectl::Kubectl;
use crate::cmd::print;

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
    ];
    let given = here.into_iter().find(|(_, is_given)| *is_given);
    let given = given
        .map(|(option, _)| option)
        .or_else(|| args.instances.given())
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
    fn name(&self) -> &str {
        &self.source.name
    }

    fn record(&self) -> ReplicasRecord {
        let nodes = self.source.nodes.iter();
        ReplicasRecord {
            on: "kubernetes".to_owned(),
            load: self.load.command.clone(),
            nodes: nodes.map(|node| node.name.clone()).collect(),
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
