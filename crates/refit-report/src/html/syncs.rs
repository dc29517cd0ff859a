//! Who waited for durability, by executable.

use std::collections::{BTreeMap, BTreeSet};

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_run::{Calls, OPENING};

use super::grid::titles;
use super::markup::Html;
use super::{colour, scrolled};
use crate::format;
use crate::row::{Row, is_unseen, middle, rows, waits as calls};
use crate::table::Kind;

/// Those that wait for durability.
fn syncs(calls: &BTreeMap<String, Calls>) -> impl Iterator<Item = (&String, &Calls)> {
    let calls = calls.iter();
    calls.filter(|(name, calls)| !OPENING.contains(&name.as_str()) && calls.seen > 0)
}

/// The median over a variant's runs; a run without the executable has none.
fn median(experiment: &Experiment, variant: usize, executable: &str, of: fn(&Calls) -> u64) -> f64 {
    let runs = experiment.runs.counted(variant);
    let values = runs.map(|run| {
        let calls = calls(run);
        let syncs = calls
            .get(executable)
            .into_iter()
            .flat_map(|calls| syncs(calls));
        syncs
            .map(|(_, calls)| of(calls))
            .fold(0, u64::saturating_add) as f64
    });
    middle(values.collect()).unwrap_or(0.0)
}

/// One block of rows for each executable that syncs under any variant.
pub fn section(main: &mut Html, experiment: &Comparison) {
    let unseen = |row: &Row| {
        let metric = experiment.metric("syncs");
        metric.is_some_and(|metric| is_unseen(experiment, row.index, &metric))
    };
    let rows = rows(experiment);
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.variant.disqualified.is_none() && !unseen(row))
        .collect();
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in rows
        .iter()
        .flat_map(|row| experiment.runs.counted(row.index))
    {
        for (executable, calls) in calls(run) {
            for (kind, _) in syncs(calls) {
                kinds.entry(executable).or_default().insert(kind);
            }
        }
    }
    if kinds.is_empty() {
        return;
    }
    let mut blocks: Vec<(&str, BTreeSet<&str>)> = kinds.into_iter().collect();
    let waited = |executable: &str| {
        let waits = rows
            .iter()
            .map(|row| median(experiment, row.index, executable, |calls| calls.waited_ns));
        waits.fold(0.0, f64::max)
    };
    blocks.sort_by(|(a, _), (b, _)| waited(b).total_cmp(&waited(a)));
    super::section(main, "Waiting for the disk", |section| {
        let text = "Calls that ask for durability, by executable: medians over the runs that count. \
                    Suppressed calls did not reach the kernel.";
        section.leaf("p", &[], text);
        scrolled(section, "sync calls by executable", |section| {
            section.element("table", &[("class", "data")], |table| {
                let words = ["executable", "variant"].map(|title| (Kind::Words, title));
                let numbers = ["calls", "suppressed", "waited"].map(|title| (Kind::Numbers, title));
                titles(table, words.into_iter().chain(numbers));
                for (executable, kinds) in &blocks {
                    table.element("tbody", &[], |body| {
                        block(body, experiment, &rows, executable, kinds)
                    });
                }
            });
        });
    });
}

fn block(
    body: &mut Html,
    experiment: &Experiment,
    rows: &[&Row],
    executable: &str,
    kinds: &BTreeSet<&str>,
) {
    for (i, row) in rows.iter().enumerate() {
        body.element(
            "tr",
            &[("class", &colour::class(experiment, row.index))],
            |tr| {
                if i == 0 {
                    let span = rows.len().to_string();
                    tr.element("th", &[("rowspan", &span), ("scope", "rowgroup")], |th| {
                        th.leaf("code", &[], executable);
                        let kinds: Vec<&str> = kinds.iter().copied().collect();
                        th.leaf("span", &[("class", "small")], &kinds.join(", "));
                    });
                }
                tr.element("td", &[], |td| {
                    td.leaf("span", &[("class", "dot")], "");
                    td.leaf("code", &[], &row.name);
                });
                let of = |field| median(experiment, row.index, executable, field);
                let cells = [
                    format::count(of(|calls| calls.seen)),
                    format::count(of(|calls| calls.suppressed)),
                    format::duration(of(|calls| calls.waited_ns)),
                ];
                for cell in cells {
                    tr.leaf("td", &[("class", "number")], &cell);
                }
            },
        );
    }
}
