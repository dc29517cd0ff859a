//! The times of each variant, as hyperfine stores them.

use crate::experiment::{Experiment, Outcome, RunRecord, TimesRecord};

/// What hyperfine would have written.
pub fn results(experiment: &Experiment) -> Vec<TimesRecord> {
    (0..experiment.variants.len())
        .filter_map(|variant| times(experiment, variant))
        .collect()
}

fn times(experiment: &Experiment, variant: usize) -> Option<TimesRecord> {
    let runs: Vec<&RunRecord> = experiment.counted(variant).collect();
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
