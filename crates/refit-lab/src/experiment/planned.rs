//! An experiment before its first run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use refit_run::fingerprint;
use refit_stats::OVERALL_ALPHA;

use super::{Environment, Experiment, PlanRecord, SCHEMA, Samples, VariantRecord};
use crate::replicas::{LOAD, recipe_record};
use crate::request::{Request, Subject};
use crate::variants::setting_records;

impl Experiment {
    /// What is asked for, and the machine as it is now.
    pub fn planned(request: &Request, variants: Vec<VariantRecord>) -> Experiment {
        let (command, main, record, mut environment) = match &request.subject {
            Subject::Command(subject) => {
                let directory = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
                (
                    words(&subject.words),
                    "wall".to_owned(),
                    None,
                    here(&directory),
                )
            }
            Subject::Recipe(subject) => {
                let with = request.with.launch().load;
                let with_load = subject.recipe.with_load(&with);
                // A load that it does not have is refused before it runs.
                let recipe = with_load.as_ref().unwrap_or(&subject.recipe);
                let record = recipe.record();
                let name = vec![record.name.clone()];
                let main = recipe.main().to_owned();
                (name, main, Some(record), here(&subject.dir))
            }
            Subject::Replicas(replicas) => {
                let record = recipe_record(replicas.as_ref());
                // With another load it is another comparison.
                let load = record.replicas.iter().map(|replicas| &replicas.load);
                let words = [&record.name].into_iter().chain(load).cloned().collect();
                let elsewhere = Environment {
                    fixed: replicas.fixed(),
                    ..Environment::default()
                };
                (words, LOAD.to_owned(), Some(record), elsewhere)
            }
        };
        let input = match &request.subject {
            Subject::Command(subject) => subject.input.as_ref(),
            Subject::Recipe(_) | Subject::Replicas(_) => None,
        };
        if let Some(name) = &request.machine {
            environment.fixed.insert("machine".to_owned(), name.clone());
        }
        let started = SystemTime::UNIX_EPOCH.elapsed();
        Experiment {
            schema: SCHEMA,
            kind: "compare".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix: started.map_or(0, |since| since.as_secs()),
            command,
            options: request.options.clone(),
            input: input.map(|path| path.display().to_string()),
            main,
            recipe: record,
            unavailable: request.unavailable.clone(),
            with: setting_records(&request.with, request.subject.recipe()),
            seed: request.seed,
            delta: request.delta,
            plan: PlanRecord {
                alpha: OVERALL_ALPHA,
                budget_s: request.budget.as_secs_f64(),
                ..PlanRecord::default()
            },
            environment,
            variants,
            runs: Samples::default(),
            interrupted: false,
            failed: None,
        }
    }
}

/// This machine, with what belongs to the disk of this directory.
fn here(directory: &Path) -> Environment {
    Environment {
        fixed: fingerprint::fixed(directory),
        before: fingerprint::changing(),
        after: BTreeMap::new(),
    }
}

fn words(command: &[OsString]) -> Vec<String> {
    let words = command.iter().map(|word| word.to_string_lossy());
    words.map(std::borrow::Cow::into_owned).collect()
}
