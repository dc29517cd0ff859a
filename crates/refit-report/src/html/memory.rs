//! Memory over operations: does it grow with the work, and who has it?

mod course;

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_run::MemorySample;

use super::{chart, colour, elements};
use crate::format;
use crate::markup::number;
use crate::markup::{At, Markup};
use crate::row::counting;
use course::{Course, Points};

const HEIGHT: f64 = 200.0;
/// The charts' breadth in their own units.
const BREADTH: f64 = 1000.0;
const MIB: f64 = 1048576.0;
/// With more samples the lines have to do.
const MOST_DOTS: usize = 800;

/// Whose memory a chart shows.
type Whose = (&'static str, fn(&MemorySample) -> u64);

/// A chart for the whole service, or one for the main process and one for all
/// others.
pub fn section(main: &mut Markup, comparison: &Comparison) {
    let courses: Vec<Course> = counting(comparison)
        .iter()
        .filter_map(|row| Course::of(&comparison.experiment, row.index))
        .collect();
    if courses.is_empty() {
        return;
    }
    let samples = || courses.iter().flat_map(Course::all);
    let has_children = samples().any(|(_, sample)| sample.children_pss_bytes > 0);
    let unreadable = samples().any(|(_, sample)| sample.unreadable > 0);
    let charts: &[Whose] = match has_children {
        true => &[
            ("Main process", |sample| sample.parent_pss_bytes),
            ("All other processes", |sample| sample.children_pss_bytes),
        ],
        false => &[("The process", |sample| sample.parent_pss_bytes)],
    };
    elements::section(main, "Memory over operations", |section| {
        section.leaf("p", &[], &about(&comparison.experiment));
        if unreadable {
            let text =
                "The memory of some processes could not be read: what is drawn is a lower bound.";
            section.element("p", &[], |p| p.leaf("strong", &[("class", "unsure")], text));
        }
        let has_course = |variant: usize| courses.iter().any(|course| course.variant == variant);
        chart::legend(section, &comparison.experiment, has_course);
        section.element("div", &[("class", "charts")], |charts_box| {
            for whose in charts {
                draw(charts_box, &comparison.experiment, &courses, *whose);
            }
        });
    });
}

fn about(experiment: &Experiment) -> String {
    let recipe = experiment.recipe.as_ref();
    let unit = recipe.map_or("operation", |recipe| &recipe.unit);
    format!(
        "Proportional memory (PSS) against the operations done ({unit}). Each line is the run with its variant's \
         median memory at the end; each dot is a sample of any run. Samples are taken at fixed times; operations \
         are assumed to be spread evenly over the measured window."
    )
}

/// Where things lie in a chart.
struct Frame {
    of: fn(&MemorySample) -> u64,
    bytes: f64,
    operations: f64,
}

impl Frame {
    fn new(courses: &[Course], of: fn(&MemorySample) -> u64) -> Frame {
        let points = || courses.iter().flat_map(Course::all);
        let bytes = points().map(|(_, sample)| of(sample)).max();
        let operations = points().map(|(operations, _)| *operations);
        Frame {
            of,
            bytes: bytes.unwrap_or(0).max(1) as f64 * 1.06,
            operations: operations.fold(1.0, f64::max),
        }
    }

    fn y(&self, bytes: f64) -> f64 {
        HEIGHT - 1.0 - bytes / self.bytes * (HEIGHT - 8.0)
    }

    fn place(&self, (operations, sample): &(f64, &MemorySample)) -> [f64; 2] {
        let bytes = (self.of)(sample) as f64;
        [operations / self.operations, self.y(bytes)]
    }

    fn line(&self, points: &Points) -> String {
        let places = points.iter().map(|point| {
            let [x, y] = self.place(point);
            format!("{},{}", number(x * BREADTH), number(y))
        });
        places.collect::<Vec<_>>().join(" ")
    }
}

fn draw(charts: &mut Markup, experiment: &Experiment, courses: &[Course], (title, of): Whose) {
    let frame = Frame::new(courses, of);
    charts.element("figure", &[], |figure| {
        figure.leaf("figcaption", &[], title);
        figure.element("div", &[("class", "chart")], |chart| {
            let unit = if frame.bytes < MIB { 1024.0 } else { MIB };
            let ticks = chart::steps(frame.bytes, unit);
            let labels = ticks.iter().map(|bytes| (frame.y(*bytes), label(*bytes)));
            chart::labels(chart, HEIGHT, labels);
            chart.element("div", &[("class", "field")], |field| {
                let height = number(HEIGHT);
                let name = format!("{title}: memory over operations");
                let attributes = [("height", &*height), ("role", "img"), ("aria-label", &name)];
                field.element("svg", &attributes, |svg| {
                    for bytes in &ticks {
                        let y = At::Px(frame.y(*bytes));
                        svg.line("grid", [At::Px(0.0), y], [At::Part(1.0), y]);
                    }
                    dots(svg, experiment, courses, &frame);
                    lines(svg, experiment, courses, &frame);
                });
                ends(field, frame.operations);
            });
        });
    });
}

fn dots(svg: &mut Markup, experiment: &Experiment, courses: &[Course], frame: &Frame) {
    if courses.iter().flat_map(Course::all).count() > MOST_DOTS {
        return;
    }
    for course in courses {
        let class = format!("sample {}", colour::class(experiment, course.variant));
        for point in course.all() {
            let [x, y] = frame.place(point);
            svg.circle(&class, [At::Part(x), At::Px(y)], "2");
        }
    }
}

/// Stretched with the screen, which a line bears and a dot does not.
fn lines(svg: &mut Markup, experiment: &Experiment, courses: &[Course], frame: &Frame) {
    let area = format!("0 0 {} {}", number(BREADTH), number(HEIGHT));
    let stretched = [("viewBox", &*area), ("preserveAspectRatio", "none")];
    svg.element("svg", &stretched, |svg| {
        // The baseline lies above: where lines meet it is dashed.
        for course in courses.iter().rev() {
            let class = format!("memory {}", colour::class(experiment, course.variant));
            let points = frame.line(course.median());
            svg.void("polyline", &[("class", &class), ("points", &points)]);
        }
    });
}

fn label(bytes: f64) -> String {
    if bytes > 0.0 {
        format::bytes(bytes)
    } else {
        "0".to_owned()
    }
}

/// Operations at the edges and between them.
fn ends(field: &mut Markup, operations: f64) {
    field.element("svg", &[("height", "18"), ("aria-hidden", "true")], |svg| {
        let ticks = chart::steps(operations, 1.0);
        for (i, tick) in ticks.iter().enumerate() {
            let at = tick / operations;
            let anchor = match (i, at > 0.93) {
                (0, _) => "start",
                (_, true) => "end",
                _ => "middle",
            };
            let place = [At::Part(at), At::Px(14.0)];
            svg.label(place, anchor, &format::count(*tick));
        }
    });
}
