//! Every metric of every variant, with its effect where there is one.

use refit_lab::{Comparison, Metric, Verdict};

use super::markup::Html;
use super::{colour, scrolled, tone};
use crate::format;
use crate::paint::Tone;
use crate::row::{Row, is_unseen, median, rows, value};

/// The table, without metrics that no variant has.
pub fn section(main: &mut Html, experiment: &Comparison) {
    let rows = rows(experiment);
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.variant.disqualified.is_none())
        .collect();
    let metrics = experiment.metrics();
    let known = |metric: &&Metric| {
        let medians = rows
            .iter()
            .filter_map(|row| median(experiment, row.index, metric));
        medians.fold(0.0, f64::max) > 0.0
    };
    let shown: Vec<&Metric> = metrics.iter().filter(known).collect();
    if shown.is_empty() {
        return;
    }
    super::section(main, "Every metric", |section| {
        let text = "Medians over the runs that count, each with its change from the baseline and its \
                    verdict. Of the metrics beside the main one, a difference has a word only if it stands \
                    after Holm’s correction for their number. Metrics that were always 0 are left out.";
        section.leaf("p", &[], text);
        scrolled(section, "every metric by variant", |section| {
            section.element("table", &[("class", "data")], |table| {
                table.element("thead", &[], |head| {
                    head.element("tr", &[], |tr| {
                        tr.leaf("th", &[], "metric");
                        for row in &rows {
                            let class = format!("number {}", colour::class(experiment, row.index));
                            tr.element("th", &[("class", &class)], |th| {
                                th.leaf("span", &[("class", "dot")], "");
                                th.leaf("code", &[], &row.name);
                            });
                        }
                    });
                });
                table.element("tbody", &[], |body| {
                    for metric in &shown {
                        body.element("tr", &[], |tr| line(tr, experiment, &rows, metric));
                    }
                });
            });
        });
    });
}

fn line(tr: &mut Html, experiment: &Comparison, rows: &[&Row], metric: &Metric) {
    tr.element("th", &[("scope", "row")], |th| {
        th.text(&metric.name);
        th.leaf("span", &[("class", "small")], &metric.about);
    });
    for row in rows {
        tr.element("td", &[("class", "number")], |td| {
            let median = median(experiment, row.index, metric);
            td.text(&median.map_or("unknown".to_owned(), |median| {
                value(experiment, metric, median)
            }));
            let Some(effect) = experiment
                .effects
                .get(row.index, &metric.name)
                .filter(|_| row.index > 0 && !is_unseen(experiment, row.index, metric))
            else {
                return;
            };
            let says = match (effect.is_difference(), effect.gain) {
                (true, true) => Tone::Good,
                (true, false) => Tone::Bad,
                (false, _) => Tone::Plain,
            };
            let shown = |verdict: &Verdict| effect.is_difference() || !verdict.is_difference();
            let word = effect.verdict.filter(shown).map_or("", Verdict::word);
            let text = format!("{} {word}", format::percent_short(effect.change));
            let class = format!("small {}", tone(says));
            td.leaf("span", &[("class", &class)], text.trim_end());
        });
    }
}
