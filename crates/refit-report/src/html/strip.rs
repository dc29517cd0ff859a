//! Every run in the order in which it was made: the picture of `--svg` without
//! its legend, as broad as the screen.

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_stats::Measure;

use super::markup::{Html, part};
use super::{chart, colour};
use crate::format;
use crate::plot::{Frame, NO_BASELINE, axis, runs};
use crate::row::{self, is_service};
use crate::svg::number;

const HEIGHT: f64 = 300.0;
const MARGIN: f64 = 8.0;

/// The chart under its heading.
pub fn section(main: &mut Html, experiment: &Comparison) {
    super::section(main, "Every run", |section| {
        let Some(frame) = Frame::new(experiment, [MARGIN, HEIGHT - MARGIN], 0.0) else {
            section.leaf("p", &[], NO_BASELINE);
            return;
        };
        section.leaf("p", &[], &about(experiment, &frame));
        chart::legend(section, experiment, |_| true);
        section.element("div", &[("class", "chart")], |chart| {
            let ticks: Vec<f64> = axis::ticks(&frame.scale);
            let labels = ticks
                .iter()
                .map(|change| (frame.y(change.ln_1p()), axis::label(*change)));
            chart::labels(chart, HEIGHT, labels);
            chart.element("div", &[("class", "field")], |field| {
                let height = number(HEIGHT);
                let name = "every run in order, as a ratio to the baseline's median";
                let attributes = [("height", &*height), ("role", "img"), ("aria-label", name)];
                field.element("svg", &attributes, |svg| {
                    draw(svg, experiment, &frame, &ticks)
                });
                field.element("p", &[("class", "axis")], |axis| {
                    axis.leaf("span", &[], first(experiment));
                    let last = format!("run {}", format::count(experiment.runs.len() as f64));
                    axis.leaf("span", &[], &last);
                });
            });
        });
    });
}

fn first(experiment: &Experiment) -> &'static str {
    match experiment.runs.first() {
        Some(run) if run.warmup => "warm-up",
        _ => "first run",
    }
}

fn about(experiment: &Experiment, frame: &Frame) -> String {
    let what = if is_service(experiment) {
        "run of a freshly started service"
    } else {
        "run"
    };
    let better = match frame.metric.measure {
        Measure::Rate => "higher is faster",
        Measure::Duration => "lower is faster",
        Measure::Amount => "lower is less",
    };
    format!(
        "The {} of each {what} relative to the baseline's median, in the order of the runs ({better}; logarithmic \
         scale). A line joins the two of a round pair; the warm-up is faint; a cross is a run that does not count.",
        frame.metric.name
    )
}

fn draw(svg: &mut Html, experiment: &Experiment, frame: &Frame, ticks: &[f64]) {
    let total = experiment.runs.len().max(1) as f64;
    let x = |index: usize| part((index as f64 + 0.5) / total);
    let margin = experiment.delta.abs().ln_1p();
    let (upper, lower) = (frame.y(margin), frame.y(-margin));
    let [y, height] = [upper, lower - upper].map(number);
    svg.void(
        "rect",
        &[
            ("class", "band"),
            ("width", "100%"),
            ("y", &y),
            ("height", &height),
        ],
    );
    for change in ticks {
        let y = number(frame.y(change.ln_1p()));
        let class = if axis::is_zero(*change) {
            "zero"
        } else {
            "grid"
        };
        svg.void(
            "line",
            &[("class", class), ("x2", "100%"), ("y1", &y), ("y2", &y)],
        );
    }
    let warmup = experiment.runs.iter().take_while(|run| run.warmup).count();
    if warmup > 0 {
        let (width, height) = (part(warmup as f64 / total), number(HEIGHT));
        svg.void(
            "rect",
            &[("class", "warm"), ("width", &width), ("height", &height)],
        );
    }
    let y = |index: usize| Some(frame.y(frame.log(frame.metric.of(&experiment.runs[index])?)));
    for (first, second, variant) in runs::joined(&experiment.runs) {
        if let (Some(from), Some(to)) = (y(first), y(second)) {
            let class = format!("pair {}", colour::class(experiment, variant));
            let place = [x(first), number(from), x(second), number(to)];
            let line = [
                ("class", &*class),
                ("x1", &place[0]),
                ("y1", &place[1]),
                ("x2", &place[2]),
                ("y2", &place[3]),
            ];
            svg.void("line", &line);
        }
    }
    for (i, run) in experiment.runs.iter().enumerate() {
        let (Some(value), Some(y)) = (frame.metric.of(run), y(i)) else {
            continue;
        };
        let kind = match (run.failure.is_some(), run.warmup) {
            (true, _) => "failed",
            (false, true) => "warmup",
            (false, false) => "run",
        };
        let class = format!("{kind} {}", colour::class(experiment, run.variant));
        let (x, y) = (x(i), number(y));
        let variant = experiment.variants.get(run.variant);
        let title = format!(
            "run {}: {} {}",
            i + 1,
            variant.map_or("?", |variant| &variant.name),
            row::value(experiment, &frame.metric, value)
        );
        if kind == "failed" {
            let place = [
                ("x", &*x),
                ("y", &*y),
                ("overflow", "visible"),
                ("class", &*class),
            ];
            svg.element("svg", &place, |svg| {
                svg.void("path", &[("d", "M-4 -4L4 4M-4 4L4 -4")]);
                svg.leaf("title", &[], &title);
            });
        } else {
            let place = [("class", &*class), ("cx", &*x), ("cy", &*y), ("r", "3.5")];
            svg.element("circle", &place, |dot| dot.leaf("title", &[], &title));
        }
    }
}
