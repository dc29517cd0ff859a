//! Memory at the end of the window: five numbers that are often taken for one
//! another.

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;

use super::{colour, elements};
use crate::format;
use crate::markup::{At, Markup};
use crate::row::{Row, counting, is_service};
use crate::values::median;

/// Only of services that fork.
const OF_FORKS: &str = "fork-copies";

/// Title, metric, what it is.
const PANELS: [[&str; 3]; 5] = [
    [
        "Address space",
        "vsz",
        "VSZ: reserved addresses, most of them without memory",
    ],
    [
        "Resident",
        "rss",
        "RSS: shared memory is counted in each process that shares it",
    ],
    [
        "Proportional",
        "pss",
        "PSS: shared memory is divided among the processes that share it",
    ],
    [
        "Copied after fork",
        OF_FORKS,
        "copies of pages that processes shared after a fork until one of them wrote: a part of PSS",
    ],
    [
        "Used on the machine",
        "memory-used",
        "memory available before the start minus that at the end: page cache that cannot be dropped, kernel memory, other processes",
    ],
];

/// The bars, each panel on its own scale.
pub fn section(main: &mut Markup, comparison: &Comparison) {
    // Of replicas elsewhere only the sum is read, which the table has.
    if !is_service(&comparison.experiment) || comparison.experiment.is_elsewhere() {
        return;
    }
    let rows = counting(comparison);
    elements::section(main, "Memory at the end", |section| {
        let text = "Medians over the runs that count, at the end of the measured window; a thin line reaches from \
                    the smallest of them to the largest. Each panel has its own scale; in the proportional one \
                    the dark part is the main process.";
        section.leaf("p", &[], text);
        section.element("div", &[("class", "panels")], |panels| {
            for [title, metric, about] in PANELS {
                if metric == OF_FORKS && !rows.iter().any(|row| forks(&comparison.experiment, row))
                {
                    continue;
                }
                panels.element("figure", &[], |figure| {
                    figure.element("figcaption", &[], |caption| {
                        caption.text(title);
                        caption.leaf("span", &[("class", "small")], about);
                    });
                    bars(figure, &comparison.experiment, &rows, metric);
                });
            }
        });
    });
}

/// A run of the variant has such copies.
fn forks(experiment: &Experiment, row: &Row) -> bool {
    let metric = experiment.metric(OF_FORKS);
    let mut runs = experiment.runs.counted(row.index);
    metric.is_some_and(|metric| runs.any(|run| metric.of(run).is_some_and(|bytes| bytes > 0.0)))
}

/// The runs of one variant.
struct Bar<'a> {
    row: &'a Row<'a>,
    median: Option<f64>,
    /// Smallest and largest.
    range: Option<[f64; 2]>,
    /// Of the main process, where it is told apart.
    main: Option<f64>,
}

impl<'a> Bar<'a> {
    fn of(experiment: &Experiment, row: &'a Row, name: &str) -> Option<Bar<'a>> {
        let metric = experiment.metric(name)?;
        let runs = experiment.runs.counted(row.index);
        let mut values: Vec<f64> = runs.filter_map(|run| metric.of(run)).collect();
        values.sort_by(f64::total_cmp);
        let main = experiment.metric("pss-parent").filter(|_| name == "pss");
        Some(Bar {
            row,
            median: median(experiment, row.index, &metric),
            range: values
                .first()
                .zip(values.last())
                .map(|(low, high)| [*low, *high]),
            main: main.and_then(|metric| median(experiment, row.index, &metric)),
        })
    }

    /// `(85 MiB to 98 MiB)`, where they differ.
    fn spread(&self) -> Option<String> {
        let [low, high] = self.range?.map(format::bytes);
        (low != high).then(|| format!("({low} to {high})"))
    }
}

fn bars(figure: &mut Markup, experiment: &Experiment, rows: &[Row], name: &str) {
    let bars: Vec<Bar> = rows
        .iter()
        .filter_map(|row| Bar::of(experiment, row, name))
        .collect();
    let ends = || bars.iter().filter_map(|bar| bar.range);
    // What was used on the machine may be less than nothing.
    let low = ends().map(|[low, _]| low).fold(0.0, f64::min);
    let high = ends().map(|[_, high]| high).fold(1.0, f64::max);
    let at = |bytes: f64| (bytes - low) / (high - low);
    figure.element("ul", &[("class", "bars")], |list| {
        for bar in &bars {
            let class = colour::class(experiment, bar.row.index);
            list.element("li", &[("class", &class)], |item| {
                item.leaf("span", &[("class", "who")], &bar.row.name);
                item.element("span", &[("class", "much")], |item| {
                    item.text(&bar.median.map_or("unknown".to_owned(), format::bytes));
                    if let Some(spread) = bar.spread() {
                        item.text(" ");
                        item.leaf("span", &[("class", "range")], &spread);
                    }
                });
                item.element("svg", &[("height", "12"), ("aria-hidden", "true")], |svg| {
                    draw(svg, bar, at);
                });
            });
        }
    });
}

fn draw(svg: &mut Markup, bar: &Bar, at: impl Fn(f64) -> f64) {
    let mut area = |class: &str, bytes: f64| {
        let [left, right] = [at(bytes.min(0.0)), at(bytes.max(0.0))];
        let size = [At::Part(right - left), At::Px(12.0)];
        svg.rect(class, [At::Part(left), At::Px(0.0)], size);
    };
    if let Some(median) = bar.median {
        area("bar-all", median);
    }
    if let Some(main) = bar.main {
        area("bar-main", main);
    }
    if let (Some(_), Some(range)) = (bar.spread(), bar.range) {
        let [low, high] = range.map(|bytes| [At::Part(at(bytes)), At::Px(6.0)]);
        svg.line("spread", low, high);
    }
}
