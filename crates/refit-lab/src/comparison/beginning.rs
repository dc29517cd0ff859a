//! What is to be compared, before anything runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use refit_knobs::Settings;
use refit_stats::OVERALL_ALPHA;

use super::Comparison;
use super::recipe_runner::RecipeRunner;
use super::runner::{Runner, Runs};
use crate::error::LabError;
use crate::experiment::{
    Environment, Experiment, PlanRecord, Role, SCHEMA, SettingRecord, VariantRecord,
};
use crate::request::Request;
use refit_recipe::Recipe;
use refit_run::{fingerprint, machine_load::Busy};

impl<'a> Comparison<'a> {
    pub(super) fn new(request: &'a Request) -> Result<Self, LabError> {
        let none = Settings(Vec::new());
        let recipe = request.recipe.as_ref();
        if let Some(missing) = recipe.and_then(Recipe::missing) {
            return Err(LabError::Missing(missing));
        }
        let mut variants = vec![variant_record("baseline", Role::Baseline, &none, recipe)];
        let mut settings = vec![request.with.clone()];
        for candidate in &request.candidates {
            variants.push(variant_record(
                &candidate.to_string(),
                Role::Candidate,
                candidate.settings(),
                recipe,
            ));
            settings.push(request.with.join(candidate.settings())?);
        }
        if request.bare {
            variants.push(variant_record("bare", Role::Bare, &none, recipe));
            settings.push(request.with.clone());
        }
        // Exact answers have no noise to be priced.
        if !recipe.is_some_and(Recipe::is_exact) {
            variants.push(variant_record(
                "baseline again",
                Role::Hidden,
                &none,
                recipe,
            ));
            settings.push(request.with.clone());
        }
        let directory = match recipe {
            Some(_) => request.dir.clone(),
            None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        };
        let experiment = Experiment {
            schema: SCHEMA,
            kind: "compare".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix: SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |since| since.as_secs()),
            command: match recipe {
                Some(recipe) => vec![recipe.name().to_owned()],
                None => words(&request.command),
            },
            main: recipe.map_or("wall", Recipe::main).to_owned(),
            recipe: recipe.map(Recipe::record),
            unavailable: request.unavailable.clone(),
            with: reports(&request.with, recipe),
            seed: request.seed,
            delta: request.delta,
            plan: PlanRecord {
                alpha: OVERALL_ALPHA,
                budget_s: request.budget.as_secs_f64(),
                ..PlanRecord::default()
            },
            environment: Environment {
                fixed: fingerprint::fixed(&directory),
                before: fingerprint::changing(),
                after: BTreeMap::new(),
            },
            variants,
            runs: Vec::new(),
            effects: Vec::new(),
            gates: Vec::new(),
            warnings: Vec::new(),
            interrupted: false,
            confirmation: None,
            results: Vec::new(),
        };
        for gate in &request.gates {
            gate.check(&experiment)?;
        }
        let runner: Box<dyn Runs + 'a> = match &request.recipe {
            Some(recipe) => Box::new(RecipeRunner::new(
                request,
                recipe,
                &settings,
                &experiment.variants,
                false,
            )?),
            None => Box::new(Runner::new(request, &settings, &experiment.variants)?),
        };
        Ok(Comparison {
            busy: Busy::now(runner.children_ns()),
            runner,
            request,
            experiment,
            began: Instant::now(),
            failures: BTreeMap::new(),
            single_look: false,
        })
    }
}

/// Each with its class, as the recipe declares it where it does.
fn reports(settings: &Settings, recipe: Option<&Recipe>) -> Vec<SettingRecord> {
    let class = |setting: &refit_knobs::Setting| {
        recipe.map_or_else(|| setting.class(), |recipe| recipe.class_of(setting))
    };
    let report = |setting: &refit_knobs::Setting| SettingRecord {
        setting: setting.clone(),
        class: class(setting),
    };
    settings.0.iter().map(report).collect()
}

pub(super) fn variant_record(
    name: &str,
    role: Role,
    settings: &Settings,
    recipe: Option<&Recipe>,
) -> VariantRecord {
    VariantRecord {
        name: name.to_owned(),
        role,
        settings: reports(settings, recipe),
        class: recipe.map_or_else(|| settings.class(), |recipe| recipe.class(settings)),
        disqualified: None,
        answers: Vec::new(),
        witness: None,
    }
}

fn words(command: &[OsString]) -> Vec<String> {
    command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}
