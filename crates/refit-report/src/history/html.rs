//! The score log as a page: of each command how its baseline moved, and what each change gave, with intervals.

use refit_lab::Comparison;
use refit_run::metric::Unit;
use refit_stats::OVERALL_ALPHA;

use super::{Entry, Kept, Stored, by_command, entries};
use crate::format;
use crate::html::elements::{scrolled, section};
use crate::html::verdicts::{Effects, caption};
use crate::html::{chart, page};
use crate::markup::{At, Markup, number};
use crate::paint::Tone;
use crate::table::{Column, Content, Kind};
use crate::values::{middle, value};

const HEIGHT: f64 = 180.0;
const MARGIN: f64 = 12.0;

/// The page.
#[must_use]
pub fn html(experiments: &[Stored], kept: &Kept) -> String {
    let commands = by_command(experiments);
    page("refit report: history", &[], |body| {
        body.element("header", &[], |header| {
            header.leaf("p", &[("class", "of")], "refit report --history");
            header.leaf("h1", &[], "What was tried, what it gave, what was kept");
        });
        body.element("main", &[], |main| {
            main.element("section", &[("class", "result")], |section| {
                section.leaf("p", &[("class", "answer")], &answer(experiments, kept));
                let text = "Kept: marked by --keep, or a later comparison of the same command stands on it (--with). \
                            Measured again: a later one has it as a candidate. Open: nothing came after it.";
                section.leaf("p", &[], text);
            });
            for (command, of) in &commands {
                section(main, &format::command_line(command), |section| {
                    trend(section, of);
                    changes(section, &entries(of, kept), of);
                });
            }
        });
        let last = experiments
            .iter()
            .map(|(_, one)| one.experiment.started_unix)
            .max();
        let text = format!(
            "The last comparison is of {} UTC.",
            format::date(last.unwrap_or_default())
        );
        body.leaf("footer", &[], &text);
    })
}

fn answer(experiments: &[Stored], kept: &Kept) -> String {
    let commands = by_command(experiments);
    let all: Vec<Entry> = commands
        .iter()
        .flat_map(|(_, of)| entries(of, kept))
        .collect();
    let gained = all.iter().filter(|entry| entry.gains).count();
    let stayed: Vec<String> = (all.iter())
        .filter(|entry| entry.kept == "kept")
        .map(|entry| format!("{} ({})", entry.change, entry.effect))
        .collect();
    let stayed = match stayed.is_empty() {
        true => "nothing was kept".to_owned(),
        false => format!("kept: {}", stayed.join(", ")),
    };
    format!(
        "{} of {}: {} of {} gained; {stayed}",
        format::plural(experiments.len(), "comparison"),
        format::plural(commands.len(), "command"),
        format::grouped(gained),
        format::plural(all.len(), "change"),
    )
}

/// The main metric of the baseline of one comparison.
struct Point {
    low: f64,
    median: f64,
    high: f64,
}

fn point(comparison: &Comparison) -> Option<Point> {
    let metric = comparison.experiment.main_metric();
    let runs = comparison.experiment.runs.counted(0);
    let mut values: Vec<f64> = runs.filter_map(|run| metric.of(run)).collect();
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    Some(Point {
        low: *values.get(quarter)?,
        high: *values.get(values.len() - 1 - quarter)?,
        median: middle(values)?,
    })
}

/// The baseline from one comparison to the next.
fn trend(section: &mut Markup, of: &[&Stored]) {
    let metric = of[0].1.experiment.main_metric();
    let points: Vec<(&Comparison, Point)> = (of.iter())
        .filter(|(_, one)| one.experiment.main_metric().name == metric.name)
        .filter_map(|(_, one)| Some((one, point(one)?)))
        .collect();
    let most = points
        .iter()
        .map(|(_, point)| point.high)
        .fold(0.0, f64::max);
    if points.len() < 2 || !(most > 0.0 && most.is_finite()) {
        return;
    }
    let text = format!(
        "The baseline's {} in each comparison, by date, at first {}: the dot is its median, the line reaches over the \
         middle half of its runs.",
        metric.name,
        value(&of[0].1.experiment, &metric, points[0].1.median)
    );
    section.leaf("p", &[], &text);
    let unit = if metric.unit == Unit::Bytes {
        1_048_576.0
    } else {
        1.0
    };
    let steps = chart::steps(most, unit);
    let y = |value: f64| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * value / most;
    section.element("div", &[("class", "chart")], |chart| {
        let experiment = &of[0].1.experiment;
        // A unit such as `mail/s` stands above the chart.
        let label = |step: f64| match value(experiment, &metric, step).rsplit_once(' ') {
            _ if step == 0.0 => "0".to_owned(),
            Some((number, unit)) if unit.contains('/') => number.to_owned(),
            _ => value(experiment, &metric, step),
        };
        let labels = steps.iter().map(|step| (y(*step), label(*step)));
        chart::labels(chart, HEIGHT, labels);
        chart.element("div", &[("class", "field base")], |field| {
            let height = number(HEIGHT);
            let name = format!("the baseline's {} by date", metric.name);
            let attributes = [("height", &*height), ("role", "img"), ("aria-label", &name)];
            field.element("svg", &attributes, |svg| {
                for step in &steps {
                    let y = At::Px(y(*step));
                    svg.line("grid", [At::Part(0.0), y], [At::Part(1.0), y]);
                }
                let at = |i: usize| At::Part((i as f64 + 0.5) / points.len() as f64);
                for (i, pair) in points.windows(2).enumerate() {
                    let [before, after] =
                        [&pair[0].1, &pair[1].1].map(|point| At::Px(y(point.median)));
                    svg.line("pair", [at(i), before], [at(i + 1), after]);
                }
                for (i, (_, point)) in points.iter().enumerate() {
                    let [low, middle, high] =
                        [point.low, point.median, point.high].map(|value| At::Px(y(value)));
                    svg.line("reach", [at(i), low], [at(i), high]);
                    svg.circle("estimate", [at(i), middle], "5.5");
                }
            });
            field.element("p", &[("class", "axis")], |axis| {
                for (comparison, _) in [&points[0], &points[points.len() - 1]] {
                    axis.leaf(
                        "span",
                        &[],
                        &format::date(comparison.experiment.started_unix),
                    );
                }
            });
        });
    });
}

/// Each change, with its interval.
fn changes(section: &mut Markup, all: &[Entry], of: &[&Stored]) {
    let experiment = &of[0].1.experiment;
    let cells = |of: fn(&Entry) -> String| all.iter().map(of);
    let level = format!("{} interval", format::magnitude(1.0 - OVERALL_ALPHA));
    let verdicts = all.iter().map(|entry| {
        let tone = match (entry.gains, entry.verdict.as_str()) {
            (true, _) => Tone::Good,
            (false, "inconclusive") => Tone::Unsure,
            (false, text) if text.starts_with("same") => Tone::Plain,
            _ => Tone::Bad,
        };
        (entry.verdict.clone(), tone)
    });
    let columns = [
        Column::of(Kind::Code, "change", cells(|entry| entry.change.clone())).with(Content::Name),
        Column::numbers("effect", cells(|entry| entry.effect.clone())).with(Content::Change),
        Column::numbers(&level, cells(|entry| entry.interval.clone())).with(Content::Interval),
        Column::verdicts("verdict", verdicts).with(Content::Verdict),
        Column::words("kept", cells(|entry| entry.kept.to_owned())).with(Content::Side),
        Column::words("date (UTC)", cells(|entry| entry.date.clone())).with(Content::Side),
        Column::words("result", cells(|entry| entry.file.clone())).with(Content::Side),
    ];
    let mut names: Vec<&str> = all.iter().map(|entry| entry.change.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    // One change has one colour in all comparisons.
    let class = |entry: &Entry| {
        let at = names.binary_search(&entry.change.as_str()).unwrap_or(0);
        format!("v{}", at % crate::palette::COLOURS.len())
    };
    let effects = Effects {
        columns: columns.iter().collect(),
        effects: all.iter().map(|entry| entry.record).collect(),
        classes: all.iter().map(class).collect(),
        caption: caption(experiment.main_metric().measure, experiment.delta, ""),
        delta: experiment.delta,
    };
    scrolled(section, "changes", |section| effects.table(section));
}
