//! What a pool needs of a stored comparison: a thousand of them fit into memory like this.

use std::collections::BTreeMap;

use refit_run::metric::{MeasureRecord, Unit};
use refit_stats::Block;

use super::PoolError;
use super::record::{MachineRecord, ResultRecord};
use crate::comparison::Comparison;
use crate::effects::samples_of_main;
use crate::experiment::{Experiment, Role};
use crate::metric::measure_record;
use crate::tune::Risk;

/// One result.
pub struct PoolInput {
    pub(super) file: String,
    pub(super) refit: String,
    pub(super) started_unix: u64,
    pub(super) seed: u64,
    pub(super) pairs: usize,
    pub(super) interrupted: bool,
    pub(super) is_exact: bool,
    pub(super) is_recipe: bool,
    pub(super) command: Vec<String>,
    pub(super) question: Option<String>,
    pub(super) input: Option<String>,
    pub(super) main: String,
    pub(super) measure: MeasureRecord,
    pub(super) unit: Unit,
    pub(super) unit_name: Option<String>,
    pub(super) with: Vec<String>,
    pub(super) delta: f64,
    pub(super) fixed: BTreeMap<String, String>,
    pub(super) baseline: Option<f64>,
    pub(super) sync_ns: Option<f64>,
    pub(super) variants: Vec<InputVariant>,
}

/// A candidate of it.
pub(super) struct InputVariant {
    pub(super) name: String,
    pub(super) risk: Risk,
    /// The effect and its round pairs, or why there is none.
    pub(super) measured: Result<(Block, usize), String>,
}

impl PoolInput {
    /// Of a comparison that was stored in this file.
    #[must_use]
    pub fn new(file: String, comparison: &Comparison) -> PoolInput {
        let experiment = &comparison.experiment;
        let metric = experiment.main_metric();
        let recipe = experiment.recipe.as_ref();
        PoolInput {
            file,
            refit: experiment.refit.clone(),
            started_unix: experiment.started_unix,
            seed: experiment.seed,
            pairs: experiment.runs.complete_pairs(),
            interrupted: experiment.interrupted,
            is_exact: experiment.is_exact(),
            is_recipe: recipe.is_some(),
            command: experiment.command.clone(),
            question: recipe.map(|recipe| recipe.question.clone()),
            input: experiment.input.clone(),
            main: experiment.main.clone(),
            measure: measure_record(metric.measure),
            unit: metric.unit,
            unit_name: recipe.map(|recipe| recipe.unit.clone()),
            with: (experiment.with.iter())
                .map(|with| with.setting.to_string())
                .collect(),
            delta: experiment.delta,
            fixed: experiment.environment.fixed.clone(),
            baseline: median_of_baseline(experiment, &experiment.main),
            sync_ns: sync_ns(experiment),
            variants: variants(comparison),
        }
    }

    /// The name of its machine; without one its processor, cores and memory.
    pub(super) fn machine(&self) -> String {
        if let Some(name) = self.fixed.get("machine") {
            return name.clone();
        }
        let of = |key| {
            self.fixed
                .get(key)
                .cloned()
                .unwrap_or_else(|| "?".to_owned())
        };
        let memory = of("memory");
        format!(
            "{}, {} cores, {}",
            of("cpu"),
            of("cores"),
            gib(&memory).unwrap_or(memory)
        )
    }

    /// A table of exact answers has none.
    pub(super) fn has_effects(&self) -> Result<(), PoolError> {
        if self.is_exact {
            return Err(PoolError::Exact(self.file.clone()));
        }
        Ok(())
    }

    /// Whether both are of the same thing.
    pub(super) fn is_as(&self, first: &PoolInput) -> Result<(), PoolError> {
        let input = |of: &PoolInput| of.input.clone().unwrap_or_else(|| "none".to_owned());
        let with = |of: &PoolInput| match of.with.is_empty() {
            true => "none".to_owned(),
            false => of.with.join(" "),
        };
        let subject = |of: &PoolInput| match of.is_recipe {
            true => format!("recipe {}", of.command.join(" ")),
            false => of.command.join(" "),
        };
        let compared = [
            ("command", subject(self), subject(first)),
            ("input", input(self), input(first)),
            ("metric", self.main.clone(), first.main.clone()),
            ("--with", with(self), with(first)),
        ];
        if let Some((what, here, there)) = compared.into_iter().find(|(_, a, b)| a != b) {
            return Err(PoolError::Other {
                file: self.file.clone(),
                first: first.file.clone(),
                what,
                here,
                there,
            });
        }
        let has = |name: &str| first.variants.iter().any(|variant| variant.name == name);
        if self.variants.iter().any(|variant| has(&variant.name)) {
            return Ok(());
        }
        let names = |of: &PoolInput| {
            let names: Vec<&str> = of.variants.iter().map(|variant| &*variant.name).collect();
            names.join(", ")
        };
        Err(PoolError::NoCommonVariant {
            file: self.file.clone(),
            first: first.file.clone(),
            here: names(self),
            there: names(first),
        })
    }

    pub(super) fn record(&self, machine: usize) -> ResultRecord {
        ResultRecord {
            file: self.file.clone(),
            machine,
            started_unix: self.started_unix,
            seed: self.seed,
            refit: self.refit.clone(),
            pairs: self.pairs,
            interrupted: self.interrupted,
        }
    }
}

impl MachineRecord {
    /// Of all its results, of which there is one at least.
    pub(super) fn of(inputs: &[&PoolInput]) -> MachineRecord {
        let all = |value: fn(&PoolInput) -> Option<f64>| {
            middle(inputs.iter().filter_map(|input| value(input)).collect())
        };
        MachineRecord {
            name: inputs[0].machine(),
            fixed: inputs[0].fixed.clone(),
            baseline: all(|input| input.baseline),
            sync_ns: all(|input| input.sync_ns),
        }
    }

    /// Whether a result is of this machine.
    pub(super) fn is_of(&self, input: &PoolInput) -> bool {
        self.name == input.machine()
    }
}

/// `23.5 GiB` of `24684092 kB`, as /proc/meminfo has it.
fn gib(memory: &str) -> Option<String> {
    let kib: f64 = memory.strip_suffix(" kB")?.parse().ok()?;
    let gib = kib / 1_048_576.0;
    (gib >= 1.0).then(|| format!("{gib:.1} GiB"))
}

fn variants(comparison: &Comparison) -> Vec<InputVariant> {
    let experiment = &comparison.experiment;
    let variants = experiment.variants.iter().enumerate();
    let candidates = variants.filter(|(_, variant)| variant.role == Role::Candidate);
    let of = |(index, variant): (usize, &crate::experiment::VariantRecord)| {
        let effect = comparison.effects.get(index, &experiment.main);
        let samples = samples_of_main(experiment, index);
        let block = effect.and_then(|effect| {
            let log_ratio = effect.change.ln_1p();
            let block = Block::of_samples(&samples, log_ratio)?;
            log_ratio.is_finite().then_some((block, samples.len()))
        });
        InputVariant {
            name: variant.name.clone(),
            risk: variant.risk(),
            measured: match &variant.disqualified {
                Some(why) => Err(format!("disqualified: {why}")),
                None => block.ok_or_else(|| "too few round pairs".to_owned()),
            },
        }
    };
    let unavailable = experiment.unavailable.iter().map(|missing| InputVariant {
        name: missing.settings.clone(),
        risk: Risk::NONE,
        measured: Err(missing.reason.clone()),
    });
    candidates.map(of).chain(unavailable).collect()
}

fn median_of_baseline(experiment: &Experiment, metric: &str) -> Option<f64> {
    let metric = experiment.metric(metric)?;
    middle(
        experiment
            .runs
            .counted(0)
            .filter_map(|run| metric.of(run))
            .collect(),
    )
}

/// How long a sync call of the baseline took.
fn sync_ns(experiment: &Experiment) -> Option<f64> {
    let of = |name| {
        let metric = experiment.metric(name)?;
        let values = experiment.runs.counted(0).map(|run| metric.of(run));
        values.sum::<Option<f64>>()
    };
    let (waited, calls) = (of("sync-wait")?, of("syncs")?);
    (calls > 0.0).then(|| waited / calls)
}

/// The median.
fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(f64::midpoint(values[(values.len() - 1) / 2], upper))
}
