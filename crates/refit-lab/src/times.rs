//! The times of each variant, as hyperfine stores them: its scripts read our results.

use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Outcome, RunRecord};

/// What hyperfine writes for a command; times in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimesRecord {
    /// The variant.
    pub command: String,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation; `null` with fewer than two runs.
    pub stddev: Option<f64>,
    /// Median.
    pub median: f64,
    /// Mean processor time in programs.
    pub user: f64,
    /// Mean processor time in the kernel.
    pub system: f64,
    /// Fastest.
    pub min: f64,
    /// Slowest.
    pub max: f64,
    /// Each run that counts, in order.
    pub times: Vec<f64>,
    /// Their exit codes; `null` for a signal.
    pub exit_codes: Vec<Option<i32>>,
}

/// One entry for each variant that has runs.
pub fn times(experiment: &Experiment) -> Vec<TimesRecord> {
    (0..experiment.variants.len())
        .filter_map(|variant| of_variant(experiment, variant))
        .collect()
}

fn of_variant(experiment: &Experiment, variant: usize) -> Option<TimesRecord> {
    let runs: Vec<&RunRecord> = experiment.runs.counted(variant).collect();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let times: Vec<f64> = runs
        .iter()
        .map(|run| seconds(run.run.metrics.wall_ns))
        .collect();
    let n = times.len() as f64;
    let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n;
    let mean = mean_of(&mut times.iter().copied());
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(TimesRecord {
        command: experiment.variants[variant].name.clone(),
        mean,
        stddev: (times.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        median: if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, sorted[middle])
        },
        user: mean_of(
            &mut runs
                .iter()
                .map(|run| seconds(run.run.metrics.usage.user_ns)),
        ),
        system: mean_of(
            &mut runs
                .iter()
                .map(|run| seconds(run.run.metrics.usage.system_ns)),
        ),
        min: *sorted.first()?,
        max: *sorted.last()?,
        exit_codes: runs
            .iter()
            .map(|run| match run.run.exit {
                Outcome::Code(code) => Some(code),
                Outcome::Signal(_) => None,
            })
            .collect(),
        times,
    })
}
