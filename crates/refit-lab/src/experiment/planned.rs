//! An experiment before its first run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use refit_recipe::{Recipe, RecipeRecord};
use refit_run::fingerprint;
use refit_stats::OVERALL_ALPHA;

use super::{Environment, Experiment, PlanRecord, SCHEMA, Samples, VariantRecord};
use crate::replicas::LOAD;
use crate::request::Request;
use crate::variants::setting_records;

impl Experiment {
    /// What is asked for, and the machine as it is now.
    pub fn planned(request: &Request, variants: Vec<VariantRecord>) -> Experiment {
        let recipe = request.recipe.as_ref();
        let directory = match recipe {
            Some(_) => request.dir.clone(),
            None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        };
        let replicas = request.replicas.as_ref();
        let mut fixed = replicas.map_or_else(
            || fingerprint::fixed(&directory),
            |replicas| replicas.fixed(),
        );
        let record = replicas
            .map(|replicas| replicas.record())
            .or_else(|| recipe.map(Recipe::record));
        if let Some(name) = &request.machine {
            fixed.insert("machine".to_owned(), name.clone());
        }
        let started = SystemTime::UNIX_EPOCH.elapsed();
        Experiment {
            schema: SCHEMA,
            kind: "compare".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix: started.map_or(0, |since| since.as_secs()),
            command: match &record {
                Some(recipe) => subject(recipe),
                None => words(&request.command),
            },
            options: request.options.clone(),
            input: request
                .input
                .as_ref()
                .map(|path| path.display().to_string()),
            main: match replicas {
                Some(_) => LOAD,
                None => recipe.map_or("wall", Recipe::main),
            }
            .to_owned(),
            recipe: record,
            unavailable: request.unavailable.clone(),
            with: setting_records(&request.with, recipe),
            seed: request.seed,
            delta: request.delta,
            plan: PlanRecord {
                alpha: OVERALL_ALPHA,
                budget_s: request.budget.as_secs_f64(),
                ..PlanRecord::default()
            },
            environment: Environment {
                fixed,
                before: match replicas {
                    Some(_) => BTreeMap::new(),
                    None => fingerprint::changing(),
                },
                after: BTreeMap::new(),
            },
            variants,
            runs: Samples::default(),
            interrupted: false,
            failed: None,
        }
    }
}

/// Its name; of replicas the load too, without which it is another comparison.
fn subject(recipe: &RecipeRecord) -> Vec<String> {
    let load = recipe.replicas.as_ref().map(|replicas| &replicas.load);
    [&recipe.name].into_iter().chain(load).cloned().collect()
}

fn words(command: &[OsString]) -> Vec<String> {
    let words = command.iter().map(|word| word.to_string_lossy());
    words.map(std::borrow::Cow::into_owned).collect()
}
