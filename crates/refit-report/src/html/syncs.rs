//! Who waited for durability, by executable.

use std::collections::{BTreeMap, BTreeSet};

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_run::Calls;

use super::grid::coloured;
use super::{colour, elements};
use crate::calls::{sum, syncs};
use crate::format;
use crate::markup::Markup;
use crate::row::{Row, counting};
use crate::table::{Column, Kind, Lines};
use crate::values::{is_unseen, middle, waits as calls};

/// The median over a variant's runs; a run without the executable has none.
fn median(experiment: &Experiment, variant: usize, executable: &str, of: fn(&Calls) -> u64) -> f64 {
    let runs = experiment.runs.counted(variant);
    let values =
        runs.map(|run| calls(run).get(executable).map_or(0, |calls| sum(calls, of)) as f64);
    middle(values.collect()).unwrap_or(0.0)
}

/// One block of rows for each executable that syncs under any variant.
pub fn section(main: &mut Markup, comparison: &Comparison) {
    let unseen = |row: &Row| {
        let metric = comparison.experiment.metric("syncs");
        metric.is_some_and(|metric| is_unseen(&comparison.experiment, row.index, &metric))
    };
    let mut rows = counting(comparison);
    rows.retain(|row| !unseen(row));
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let runs = rows
        .iter()
        .flat_map(|row| comparison.experiment.runs.counted(row.index));
    for (executable, calls) in runs.flat_map(calls) {
        for (kind, _) in syncs(calls) {
            kinds.entry(executable).or_default().insert(kind);
        }
    }
    if kinds.is_empty() {
        return;
    }
    let mut blocks: Vec<(&str, BTreeSet<&str>)> = kinds.into_iter().collect();
    let waited = |executable: &str| {
        let waits = rows.iter().map(|row| {
            median(&comparison.experiment, row.index, executable, |calls| {
                calls.waited_ns
            })
        });
        waits.fold(0.0, f64::max)
    };
    blocks.sort_by(|(a, _), (b, _)| waited(b).total_cmp(&waited(a)));
    // The executable is named in the first line of its block.
    let lines = || {
        blocks
            .iter()
            .flat_map(|block| rows.iter().enumerate().map(move |line| (block, line)))
    };
    let first = |i: usize, text: &str| {
        if i == 0 {
            text.to_owned()
        } else {
            String::new()
        }
    };
    let kinds = lines().map(|((_, kinds), (i, _))| -> Lines {
        let kinds: Vec<&str> = kinds.iter().copied().filter(|_| i == 0).collect();
        vec![(kinds.join(", "), "small")]
    });
    let number = |title: &str, of: fn(&Calls) -> u64, shown: fn(f64) -> String| {
        let medians = lines()
            .map(|((name, _), (_, row))| median(&comparison.experiment, row.index, name, of));
        Column::numbers(title, medians.map(shown))
    };
    let columns = [
        Column::code(
            "executable",
            lines().map(|((name, _), (i, _))| first(i, name)),
        )
        .over(kinds.collect()),
        Column::of(
            Kind::Variant,
            "variant",
            lines().map(|(_, (_, row))| row.name.clone()),
        ),
        number("calls", |calls| calls.seen, format::count),
        number("suppressed", |calls| calls.suppressed, format::count),
        number("waited", |calls| calls.waited_ns, format::duration),
    ];
    let colours: Vec<String> = lines()
        .map(|(_, (_, row))| colour::class(&comparison.experiment, row.index))
        .collect();
    elements::section(main, "Waiting for the disk", |section| {
        let text = "Calls that ask for durability, by executable: medians over the runs that count. \
                    Suppressed calls did not reach the kernel.";
        section.leaf("p", &[], text);
        coloured(
            section,
            "sync calls by executable",
            "",
            &columns.each_ref(),
            &colours,
        );
    });
}
