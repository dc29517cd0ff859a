//! What the runs of a variant come to: the medians of metrics and of sync calls, and how they are written.

use std::collections::BTreeMap;

use refit_lab::Metric;
use refit_lab::experiment::{Experiment, Role, RunRecord};
use refit_run::metric::{RATE, Unit};
use refit_run::{Calls, OPEN_SYNC, Testimony};

use crate::format;
use crate::notes::uncounted;

/// A value of a metric in its unit; a recipe's rate counts what the recipe says.
pub fn value(experiment: &Experiment, metric: &Metric, value: f64) -> String {
    let unit = experiment.recipe.as_ref().map(|recipe| &*recipe.unit);
    in_unit(&metric.name, metric.unit, unit, value)
}

/// The same; `operation`: one operation of a recipe.
pub fn in_unit(metric: &str, unit: Unit, operation: Option<&str>, value: f64) -> String {
    match operation {
        Some(operation) if metric == RATE => {
            format!("{} {operation}/s", format::per_second(value))
        }
        _ => format::value(value, unit),
    }
}

/// The median of a metric over the runs of a variant that count; `None`
/// without such runs, and where one of them does not have it.
pub fn median(experiment: &Experiment, variant: usize, metric: &Metric) -> Option<f64> {
    if is_unseen(experiment, variant, metric) {
        return None;
    }
    let runs = experiment.runs.counted(variant);
    let values: Option<Vec<f64>> = runs.map(|run| metric.of(run)).collect();
    middle(values?)
}

/// Without refit nobody counts the calls: they are unknown and not 0.
pub fn is_unseen(experiment: &Experiment, variant: usize, metric: &Metric) -> bool {
    let bare = experiment
        .variants
        .get(variant)
        .is_some_and(|variant| variant.role == Role::Bare);
    bare && metric.is_counted()
}

/// The median.
pub fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The median as text; nothing without runs that count.
pub fn shown(experiment: &Experiment, variant: usize, metric: &Metric) -> String {
    match median(experiment, variant, metric) {
        Some(median) => value(experiment, metric, median),
        None if experiment.runs.counted(variant).next().is_none() => String::new(),
        None => "unknown".to_owned(),
    }
}

/// One field of a run's calls that wait for durability: of a service those of
/// the measured window.
fn syncs_of(run: &RunRecord, field: fn(&Calls) -> u64) -> u64 {
    let service = run.load.as_ref().and_then(|load| load.service.as_ref());
    service.map_or_else(|| run.run.syncs(field), |service| service.syncs(field))
}

/// Whether files stayed open for synchronous writes in some run: each write to them is durable, and not counted.
fn writes_durably(experiment: &Experiment, variant: usize) -> bool {
    let opens = |calls: &BTreeMap<String, Calls>| calls.get(OPEN_SYNC).is_some_and(|c| c.real > 0);
    let mut runs = experiment.runs.counted(variant);
    runs.any(|run| waits(run).into_values().any(opens))
}

/// `812`, `0 (812 suppressed)`, `0 + O_SYNC writes`, `4 + 4 uncounted`, `unknown`.
pub fn syncs(experiment: &Experiment, variant: usize) -> String {
    let of = |field: fn(&Calls) -> u64| {
        let runs = experiment.runs.counted(variant);
        middle(runs.map(|run| syncs_of(run, field) as f64).collect())
    };
    let (Some(real), Some(suppressed)) = (of(|calls| calls.real), of(|calls| calls.suppressed))
    else {
        return String::new();
    };
    let uncounted = match uncounted(experiment, variant) {
        0 => String::new(),
        calls => format!(" + {} uncounted", format::count(calls as f64)),
    };
    let metric = experiment.metric("syncs");
    if metric.is_none_or(|metric| median(experiment, variant, &metric).is_none()) {
        "unknown".to_owned()
    } else if suppressed > 0.0 {
        format!(
            "{} ({} suppressed){uncounted}",
            format::count(real),
            format::count(suppressed)
        )
    } else if writes_durably(experiment, variant) {
        match &experiment.variants[variant].witness {
            Some(Testimony::Seen(seen)) if seen.lost == 0 => {
                format!("{} with O_SYNC writes", format::count(seen.calls as f64))
            }
            _ => format!("{} + O_SYNC writes", format::count(real)),
        }
    } else {
        format!("{}{uncounted}", format::count(real))
    }
}

/// Calls of one run, by executable: of a service those of the window.
pub fn waits(run: &RunRecord) -> BTreeMap<&str, &BTreeMap<String, Calls>> {
    match run.load.as_ref().and_then(|load| load.service.as_ref()) {
        Some(service) => {
            let calls = service.calls.iter();
            calls.map(|(name, calls)| (name.as_str(), calls)).collect()
        }
        None => {
            let executables = run.run.executables.iter();
            executables
                .map(|executable| (executable.executable.as_str(), &executable.calls))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(middle(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(middle(vec![9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(middle(Vec::new()), None);
    }
}
