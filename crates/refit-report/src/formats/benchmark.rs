//! A comparison as series of benchmark services: numbers that they draw over commits.
//!
//! Both formats hold the main metric and those that gates name, of each variant that was not disqualified:
//! the median of its runs with the quartiles, and beside it the ratio to the baseline with its interval.
//! The ratio is what can be followed over machines: a faster runner changes every median.

use std::collections::BTreeMap;

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord, Metric};
use refit_run::metric::{RATE, Unit};
use refit_run::printable;
use refit_stats::Measure;
use serde::Serialize;

use crate::format;
use crate::row::{Row, counting};
use crate::title::subject;
use crate::values::is_unseen;

/// Bencher takes names of at most 1024 characters.
const LONGEST_SUBJECT: usize = 200;
const LONGEST_VARIANT: usize = 800;

/// One number.
struct Figure {
    /// Index of its variant.
    variant: usize,
    metric: String,
    is_ratio: bool,
    /// More of it is better.
    is_rate: bool,
    unit: String,
    value: f64,
    /// Quartiles of a median, the interval of a ratio.
    ends: Option<[f64; 2]>,
    about: String,
}

/// An entry of github-action-benchmark's custom tools.
#[derive(Serialize)]
struct Entry {
    name: String,
    unit: String,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

/// A metric of the Bencher Metric Format.
#[derive(Serialize)]
struct Measured {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// For `customSmallerIsBetter` of github-action-benchmark; where the main metric is a rate, for
/// `customBiggerIsBetter`. A file has one direction: metrics of the other one are left out.
#[must_use]
pub fn github_benchmark(comparison: &Comparison) -> String {
    let experiment = &comparison.experiment;
    let is_rate = is_rate(&experiment.main_metric());
    let names = names(experiment);
    let entries: Vec<Entry> = figures(comparison)
        .into_iter()
        .filter(|figure| figure.is_rate == is_rate)
        .map(|figure| Entry {
            name: match figure.is_ratio {
                true => format!("{}: {} / baseline", names[figure.variant], figure.metric),
                false => format!("{}: {}", names[figure.variant], figure.metric),
            },
            unit: figure.unit,
            value: figure.value,
            range: figure.ends.map(|[low, high]| format!("{low} to {high}")),
            extra: figure.about,
        })
        .collect();
    pretty(&entries)
}

/// The Bencher Metric Format: benchmarks, with measures by name.
#[must_use]
pub fn bencher(comparison: &Comparison) -> String {
    let names = names(&comparison.experiment);
    let mut all: BTreeMap<&str, BTreeMap<String, Measured>> = BTreeMap::new();
    for figure in figures(comparison) {
        let measure = match figure.is_ratio {
            true => format!("{}-ratio", figure.metric),
            false => figure.metric,
        };
        let measured = Measured {
            value: figure.value,
            lower_value: figure.ends.map(|[low, _]| low),
            upper_value: figure.ends.map(|[_, high]| high),
        };
        let of = all.entry(&names[figure.variant]).or_default();
        of.insert(measure, measured);
    }
    pretty(&all)
}

fn pretty(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("its keys are texts and its numbers finite") + "\n"
}

/// `COMMAND: VARIANT`, of each variant another one.
fn names(experiment: &Experiment) -> Vec<String> {
    let subject = format::shortened(&printable(&subject(experiment)), LONGEST_SUBJECT);
    let mut names: Vec<String> = Vec::new();
    for (index, variant) in experiment.variants.iter().enumerate() {
        let variant = format::shortened(&printable(&variant.name), LONGEST_VARIANT);
        let mut name = format!("{subject}: {variant}");
        if names.contains(&name) {
            name += &format!(" #{index}");
        }
        names.push(name);
    }
    names
}

fn figures(comparison: &Comparison) -> Vec<Figure> {
    let experiment = &comparison.experiment;
    let mut metrics = vec![experiment.main_metric()];
    for gate in &comparison.gates {
        let is_new = metrics.iter().all(|metric| metric.name != gate.gate.metric);
        metrics.extend(experiment.metric(&gate.gate.metric).filter(|_| is_new));
    }
    let mut figures = Vec::new();
    for row in counting(comparison) {
        for metric in &metrics {
            figures.extend(median(experiment, &row, metric));
            let effect = comparison.effects.get(row.index, &metric.name);
            let effect = effect.filter(|_| row.variant.role != Role::Baseline);
            figures.extend(effect.map(|effect| ratio(experiment, &row, metric, effect)));
        }
    }
    for figure in &mut figures {
        figure.value = rounded(figure.value);
        figure.ends = figure.ends.map(|ends| ends.map(rounded));
    }
    let is_finite = |figure: &Figure| {
        let ends = figure.ends.unwrap_or_default();
        figure.value.is_finite() && ends.iter().all(|end| end.is_finite())
    };
    figures.retain(is_finite);
    figures
}

fn median(experiment: &Experiment, row: &Row, metric: &Metric) -> Option<Figure> {
    if is_unseen(experiment, row.index, metric) {
        return None;
    }
    let runs = experiment.runs.counted(row.index);
    let values: Option<Vec<f64>> = runs.map(|run| metric.of(run)).collect();
    let mut values = values?;
    values.sort_unstable_by(f64::total_cmp);
    let runs = format::plural(values.len(), "run");
    Some(Figure {
        variant: row.index,
        metric: metric.name.to_string(),
        is_ratio: false,
        is_rate: is_rate(metric),
        unit: unit(experiment, metric),
        value: quantile(&values, 0.5)?,
        ends: Some([quantile(&values, 0.25)?, quantile(&values, 0.75)?]),
        about: format!("median and quartiles of {runs}\n{}", origin(experiment)),
    })
}

fn ratio(experiment: &Experiment, row: &Row, metric: &Metric, effect: &EffectRecord) -> Figure {
    let verdict = match effect.verdict {
        Some(verdict) => format!(", {verdict}"),
        None => String::new(),
    };
    let change = format::percent(effect.change);
    Figure {
        variant: row.index,
        metric: metric.name.to_string(),
        is_ratio: true,
        is_rate: is_rate(metric),
        unit: "ratio".to_owned(),
        value: 1.0 + effect.change,
        ends: effect.interval.map(|ends| ends.map(|end| 1.0 + end)),
        about: format!(
            "{change} against the baseline{verdict}\n{}",
            origin(experiment)
        ),
    }
}

fn is_rate(metric: &Metric) -> bool {
    metric.measure == Measure::Rate
}

fn origin(experiment: &Experiment) -> String {
    let cpu = experiment.environment.fixed.get("cpu");
    let cpu = cpu.map_or(String::new(), |cpu| format!(", {cpu}"));
    let seed = format::seed(experiment.seed);
    printable(&format!("refit {}, seed {seed}{cpu}", experiment.refit))
}

/// Always the same one of a metric: a chart has one axis.
fn unit(experiment: &Experiment, metric: &Metric) -> String {
    let operation = experiment.recipe.as_ref().map(|recipe| &*recipe.unit);
    match metric.unit {
        Unit::Nanoseconds => "ns".to_owned(),
        Unit::Microseconds => "µs".to_owned(),
        Unit::Bytes => "bytes".to_owned(),
        Unit::Count => metric.name.to_string(),
        Unit::PerSecond => format!(
            "{}/s",
            operation.filter(|_| metric.name == RATE).unwrap_or("1")
        ),
        Unit::Percent => "%".to_owned(),
    }
}

/// To nine digits: a stored result gives the same text, whatever its JSON was read with.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

/// Of sorted values, between the two that are nearest.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let at = part * sorted.len().checked_sub(1)? as f64;
    let [lower, upper] = [at.floor(), at.ceil()].map(|index| sorted[index as usize]);
    Some(lower + (upper - lower) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_lab::experiment::Disqualified;

    use crate::sample;
    use serde_json::Value;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn quartiles_lie_between_the_values() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), Some(1.75));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[7.0], 0.75), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_main_metric_and_those_of_gates_are_followed_and_nothing_else() {
        let mut comparison = sample::experiment();
        let benchmark = "./import.sh --rows 10000: sync=off";
        let all = parsed(&bencher(&comparison));
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(keys(&all[benchmark]), ["wall", "wall-ratio"]);
        assert_eq!(keys(&all["./import.sh --rows 10000: baseline"]), ["wall"]);
        let ratio = &all[benchmark]["wall-ratio"];
        let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-9;
        assert!(near(&ratio["value"], 0.415), "{ratio}");
        assert!(near(&ratio["lower_value"], 0.401), "{ratio}");
        assert!(near(&ratio["upper_value"], 0.428), "{ratio}");
        comparison.gates = sample::gates();
        comparison.gates[0].gate = "max-rss<+5%".parse().unwrap();
        comparison.experiment.variants[3].disqualified =
            Some(Disqualified::Failed("exit code 1".to_owned()));
        let all = parsed(&bencher(&comparison));
        assert_eq!(
            keys(&all[benchmark]),
            ["max-rss", "max-rss-ratio", "wall", "wall-ratio"]
        );
        // The baseline, two candidates and bare.
        assert_eq!(keys(&all).len(), 4, "{all}");
    }

    #[test]
    fn a_file_for_github_has_one_direction() {
        let comparison = sample::experiment();
        let all = parsed(&github_benchmark(&comparison));
        let names: Vec<&str> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["name"].as_str().unwrap())
            .collect();
        assert!(
            names.contains(&"./import.sh --rows 10000: sync=off: wall / baseline"),
            "{names:?}"
        );
        let mut comparison = sample::service();
        comparison.gates = sample::gates();
        comparison.gates.truncate(1);
        comparison.gates[0].gate = "pss<+5%".parse().unwrap();
        let all = parsed(&github_benchmark(&comparison));
        let entries = all.as_array().unwrap();
        assert!(
            entries
                .iter()
                .all(|e| e["name"].as_str().unwrap().contains(": rate")),
            "{all}"
        );
        assert!(entries.iter().any(|e| e["unit"] == "mail/s"), "{all}");
        assert!(bencher(&comparison).contains("pss-ratio"));
    }

    #[test]
    fn names_are_short_enough_and_differ() {
        let mut comparison = sample::experiment();
        comparison.experiment.command = vec!["x".repeat(5000)];
        for (index, variant) in comparison.experiment.variants.iter_mut().enumerate() {
            variant.name = format!("{0}{index}{0}", "y".repeat(5000));
        }
        let names = names(&comparison.experiment);
        assert!(names.iter().all(|name| name.chars().count() <= 1024));
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
