//! Every run in the order in which it was made: the picture of `--svg` without
//! its legend, as broad as the screen.

use refit_lab::experiment::Experiment;
use refit_lab::{Comparison, Metric};
use refit_stats::Measure;

use super::{chart, colour, elements};
use crate::markup::number;
use crate::markup::{At, Markup, part};
use crate::plot::frame::Frame;
use crate::plot::strip::{Kind, Mark, Painter, Strip};
use crate::plot::{NO_BASELINE, axis};
use crate::row::is_service;
use crate::values::value;

const HEIGHT: f64 = 300.0;
const MARGIN: f64 = 8.0;

/// The chart under its heading.
pub fn section(main: &mut Markup, comparison: &Comparison) {
    elements::section(main, "Every run", |section| {
        let Some(frame) = Frame::new(comparison, [MARGIN, HEIGHT - MARGIN], 0.0) else {
            section.leaf("p", &[], NO_BASELINE);
            return;
        };
        section.leaf("p", &[], &about(&comparison.experiment, &frame));
        chart::legend(section, &comparison.experiment, |_| true);
        section.element("div", &[("class", "chart")], |chart| {
            let strip = Strip::new(&comparison.experiment, &frame, axis::ticks(&frame.scale));
            let labels = strip.ticks.iter();
            let labels = labels.map(|(change, y)| (*y, axis::label(*change)));
            chart::labels(chart, HEIGHT, labels);
            chart.element("div", &[("class", "field")], |field| {
                let height = number(HEIGHT);
                let name = "every run in order, as a ratio to the baseline's median";
                let attributes = [("height", &*height), ("role", "img"), ("aria-label", name)];
                field.element("svg", &attributes, |svg| {
                    strip.draw(&mut Page {
                        svg,
                        experiment: &comparison.experiment,
                        metric: &frame.metric,
                    });
                });
                field.element("p", &[("class", "axis")], |axis| {
                    for end in &strip.ends {
                        axis.leaf("span", &[], end);
                    }
                });
            });
        });
    });
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

/// A picture on the page, as broad as that is.
struct Page<'a> {
    svg: &'a mut Markup,
    experiment: &'a Experiment,
    metric: &'a Metric,
}

const LEFT: At = At::Px(0.0);
const RIGHT: At = At::Part(1.0);

impl Painter for Page<'_> {
    fn band(&mut self, [upper, lower]: [f64; 2]) {
        let breadth = [RIGHT, At::Px(lower - upper)];
        self.svg.rect("band", [LEFT, At::Px(upper)], breadth);
    }

    fn line(&mut self, change: f64, y: f64) {
        let class = if axis::is_zero(change) {
            "zero"
        } else {
            "grid"
        };
        self.svg.line(class, [LEFT, At::Px(y)], [RIGHT, At::Px(y)]);
    }

    fn warm_up(&mut self, part: f64) {
        let size = [At::Part(part), At::Px(HEIGHT)];
        self.svg.rect("warm", [LEFT, At::Px(0.0)], size);
    }

    fn pairs(&mut self, variant: usize, pairs: &[[[f64; 2]; 2]]) {
        let class = format!("pair {}", colour::class(self.experiment, variant));
        for ends in pairs {
            let [from, to] = ends.map(|[x, y]| [At::Part(x), At::Px(y)]);
            self.svg.line(&class, from, to);
        }
    }

    fn marks(&mut self, _: usize, _: Kind, marks: &[&Mark]) {
        for mark in marks {
            dot(self.svg, self.experiment, self.metric, mark);
        }
    }
}

/// A run with its value, shown where the pointer rests.
fn dot(svg: &mut Markup, experiment: &Experiment, metric: &Metric, mark: &Mark) {
    let class = format!(
        "{} {}",
        mark.kind.class(),
        colour::class(experiment, mark.variant)
    );
    let (x, y) = (part(mark.place[0]), number(mark.place[1]));
    let name = experiment.variants.get(mark.variant);
    let found = metric.of(&experiment.runs.as_slice()[mark.run]);
    let title = format!(
        "run {}: {} {}",
        mark.run + 1,
        name.map_or("?", |variant| &variant.name),
        found.map_or(String::new(), |found| value(experiment, metric, found))
    );
    if mark.kind == Kind::Failed {
        let place = [("x", &*x), ("y", &y), ("overflow", "visible")];
        svg.element("svg", &[&place[..], &[("class", &class)]].concat(), |svg| {
            svg.void("path", &[("d", "M-4 -4L4 4M-4 4L4 -4")]);
            svg.leaf("title", &[], &title);
        });
    } else {
        let place = [("class", &*class), ("cx", &x), ("cy", &y), ("r", "3.5")];
        svg.element("circle", &place, |dot| dot.leaf("title", &[], &title));
    }
}
