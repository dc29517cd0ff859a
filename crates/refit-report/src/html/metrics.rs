//! Every metric of every variant, with its effect where there is one.

use refit_lab::{Comparison, Metric};

use super::colour;
use super::elements::{self, tone};
use super::grid::grid;
use crate::format;
use crate::markup::Markup;
use crate::paint::Tone;
use crate::row::{Row, counting, difference};
use crate::table::{Column, Lines};
use crate::values::{is_unseen, median, value};

/// The table, without metrics that no variant has.
pub fn section(main: &mut Markup, comparison: &Comparison) {
    let rows = counting(comparison);
    let metrics = comparison.experiment.metrics();
    let known = |metric: &&Metric| {
        let medians = rows
            .iter()
            .filter_map(|row| median(&comparison.experiment, row.index, metric));
        medians.fold(0.0, f64::max) > 0.0
    };
    let shown: Vec<&Metric> = metrics.iter().filter(known).collect();
    if shown.is_empty() {
        return;
    }
    let about = |metric: &&Metric| vec![(metric.about.to_string(), "small")];
    let names = shown.iter().map(|metric| metric.name.to_string());
    let mut columns = vec![Column::words("metric", names).over(shown.iter().map(about).collect())];
    columns.extend(rows.iter().map(|row| of_variant(comparison, row, &shown)));
    elements::section(main, "Every metric", |section| {
        let text = "Medians over the runs that count, each with its change from the baseline and its \
                    verdict. Of the metrics beside the main one, a difference has a word only if it stands \
                    after Holm’s correction for their number. Metrics that were always 0 are left out.";
        section.leaf("p", &[], text);
        let columns: Vec<&Column> = columns.iter().collect();
        grid(section, "every metric by variant", "", &columns);
    });
}

fn of_variant(comparison: &Comparison, row: &Row, metrics: &[&Metric]) -> Column {
    let cells = metrics.iter().map(|metric| {
        let median = median(&comparison.experiment, row.index, metric);
        median.map_or("unknown".to_owned(), |median| {
            value(&comparison.experiment, metric, median)
        })
    });
    let effects = metrics.iter().map(|metric| effect(comparison, row, metric));
    Column {
        class: colour::class(&comparison.experiment, row.index),
        ..Column::numbers(&row.name, cells).over(effects.collect())
    }
}

fn effect(comparison: &Comparison, row: &Row, metric: &Metric) -> Lines {
    let effect = comparison
        .effects
        .get(row.index, &metric.name)
        .filter(|_| row.index > 0 && !is_unseen(&comparison.experiment, row.index, metric));
    let Some(effect) = effect else {
        return Lines::new();
    };
    let says = match (effect.is_difference(), effect.gain) {
        (true, true) => Tone::Good,
        (true, false) => Tone::Bad,
        (false, _) => Tone::Plain,
    };
    let word = match effect.verdict {
        Some(verdict) if effect.is_difference() => difference(effect, verdict),
        Some(verdict) if !verdict.is_difference() => verdict.to_string(),
        _ => String::new(),
    };
    let class = match tone(says) {
        "good" => "small good",
        "bad" => "small bad",
        _ => "small plain",
    };
    let text = format!("{} {word}", format::percent_short(effect.change));
    vec![(text.trim_end().to_owned(), class)]
}
