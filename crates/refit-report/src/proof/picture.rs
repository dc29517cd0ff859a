//! Gain to the right, loss upwards: one mark for each variant, and those that nothing beats
//! joined by a line.

use refit_lab::Comparison;
use refit_stats::Measure;

use super::front::{Place, places, unbeaten};
use super::row::Row;
use crate::bar::Scale;
use crate::crash::row::age;
use crate::crash::sentence::Manner;
use crate::format;
use crate::html::{chart, colour};
use crate::markup::{At, Markup, number};
use crate::plot::axis;

/// Of the part for losses of an age, in pixels.
const AGES: f64 = 190.0;
/// Of each of the lanes above and below it.
const LANE: f64 = 34.0;
/// Of the axis below.
const AXIS: f64 = 42.0;
pub(super) const HEIGHT: f64 = 3.0 * LANE + AGES + AXIS;
/// The ages that the part shows, in nanoseconds: a millisecond to a hundred seconds.
const LEAST_AGE: f64 = 1e6;
const MOST_AGE: f64 = 1e11;
/// So far from the edges, as a part of the breadth.
const MARGIN: f64 = 0.04;
/// Of a mark, in pixels.
const MARK: f64 = 12.0;
/// Marks that are nearer to each other than this part of the breadth would cover each other.
const COVERED: f64 = 0.016;

/// What its elements look like.
pub(super) const STYLE: &str = include_str!("picture.css");

/// What a reader has to know.
pub(super) const ABOUT: &str = "The further to the right, the greater the gain; the further up, the worse what a power cut took. A \
    line through a mark is its interval. A ring: something older was lost while something newer survived. Hollow: safe \
    by its class, and not cut. The dashed line joins the variants that nothing beats: more gain is there only for more \
    risk.";

/// The picture with its legend, as a part of a page.
pub fn draw(section: &mut Markup, comparison: &Comparison, rows: &[Row]) {
    let Some(places) = drawn(comparison, rows) else {
        section.leaf(
            "p",
            &[],
            "No variant has both a gain and a loss to be drawn.",
        );
        return;
    };
    section.leaf("p", &[], ABOUT);
    let wanted = |variant| has_place(rows, &places, variant);
    chart::legend(section, &comparison.experiment, wanted);
    section.element("div", &[("class", "chart plane")], |chart| {
        chart::labels(chart, HEIGHT, labels());
        chart.element("div", &[("class", "field")], |field| {
            let size = number(HEIGHT);
            let about = "gain and loss of each variant";
            let attributes = [("height", &*size), ("role", "img"), ("aria-label", about)];
            field.element("svg", &attributes, |svg| {
                field_of(svg, comparison, rows, &places);
            });
        });
    });
}

/// Where each row lies; `None` where there are not two that can be drawn.
pub(super) fn drawn(comparison: &Comparison, rows: &[Row]) -> Option<Vec<Option<Place>>> {
    let places = places(rows, comparison.experiment.main_metric().measure);
    (places.iter().flatten().count() >= 2).then_some(places)
}

/// Whether this variant is drawn.
pub(super) fn has_place(rows: &[Row], places: &[Option<Place>], variant: usize) -> bool {
    let at = rows.iter().position(|row| row.gain.index == variant);
    at.is_some_and(|at| places[at].is_some())
}

/// Axis, lanes and marks; across, in parts of the breadth of what holds them.
pub(super) fn field_of(
    svg: &mut Markup,
    comparison: &Comparison,
    rows: &[Row],
    places: &[Option<Place>],
) {
    let metric = comparison.experiment.main_metric();
    let scale = scale(places);
    frame(svg, &scale, metric.measure, &metric.name);
    let heights = heights(&scale, places);
    front(svg, &scale, places, &heights);
    for ((row, place), height) in rows.iter().zip(places).zip(heights) {
        if let Some(place) = place {
            let class = colour::class(&comparison.experiment, row.gain.index);
            mark(svg, &scale, row, (place, height), &class);
        }
    }
}

/// The height of each mark, from the top. Marks that would cover each other stand one above the other.
fn heights(scale: &Scale, places: &[Option<Place>]) -> Vec<f64> {
    let spot = |place: &Option<Place>| {
        let place = place.as_ref()?;
        Some((across(scale, place.factor), y(place.loss)))
    };
    let spots: Vec<Option<(f64, f64)>> = places.iter().map(spot).collect();
    let covers = |a: Option<(f64, f64)>, b: Option<(f64, f64)>| {
        let ((x, y), (other_x, other_y)) = a.zip(b)?;
        ((x - other_x).abs() < COVERED && (y - other_y).abs() < MARK).then_some(())
    };
    let apart = |(index, spot): (usize, &Option<(f64, f64)>)| {
        let others = spots.iter().enumerate();
        let covered = others.filter(|(_, other)| covers(*spot, **other).is_some());
        let covered: Vec<usize> = covered.map(|(other, _)| other).collect();
        let before = covered.iter().filter(|other| **other < index).count();
        let (_, y) = spot.unwrap_or_default();
        y + (before as f64 - (covered.len().max(1) - 1) as f64 / 2.0) * MARK
    };
    spots.iter().enumerate().map(apart).collect()
}

/// From the smallest factor to the largest, with 1 among them.
fn scale(places: &[Option<Place>]) -> Scale {
    let ends = |place: &Place| {
        let [low, high] = place.interval.unwrap_or([place.factor; 2]);
        // One end of an interval may be far out.
        [low.max(place.factor / 3.0), high.min(place.factor * 3.0)]
    };
    let changes = places
        .iter()
        .flatten()
        .flat_map(ends)
        .map(|factor| factor - 1.0);
    Scale::around(changes, 0.02)
}

fn x(scale: &Scale, factor: f64) -> At {
    At::Part(across(scale, factor))
}

/// A part of the breadth.
fn across(scale: &Scale, factor: f64) -> f64 {
    let part = scale.part(factor.max(f64::MIN_POSITIVE).ln());
    MARGIN + part * (1.0 - 2.0 * MARGIN)
}

/// Where a loss lies, from the top.
fn y((manner, oldest_ns): (Manner, u64)) -> f64 {
    match manner {
        Manner::Damaged => LANE / 2.0,
        Manner::Everything => LANE * 1.5,
        Manner::Newest | Manner::Holes => y_of_age(oldest_ns as f64),
        Manner::Nothing => 2.0 * LANE + AGES + LANE / 2.0,
    }
}

fn y_of_age(ns: f64) -> f64 {
    let log = (ns.clamp(LEAST_AGE, MOST_AGE) / LEAST_AGE).ln();
    let part = log / (MOST_AGE / LEAST_AGE).ln();
    2.0 * LANE + AGES - 8.0 - part * (AGES - 16.0)
}

/// Names of the lanes and ages, each at its height.
pub(super) fn labels() -> impl Iterator<Item = (f64, String)> {
    let lanes = [
        (Manner::Damaged, "damaged"),
        (Manner::Everything, "everything"),
        (Manner::Nothing, "none found"),
    ];
    let lanes = lanes.map(|(manner, text)| (y((manner, 0)), text.to_owned()));
    let ages = ages().map(|ns| {
        let text = age(ns as u64);
        (y_of_age(ns), text.replace(".00 ", " ").replace(".0 ", " "))
    });
    lanes.into_iter().chain(ages)
}

fn ages() -> impl Iterator<Item = f64> {
    (0..=5).map(|n| LEAST_AGE * 10.0_f64.powi(n))
}

fn frame(svg: &mut Markup, scale: &Scale, measure: Measure, metric: &str) {
    let (top, bottom) = (0.0, HEIGHT - AXIS);
    for (y, height) in [(top, 2.0 * LANE), (2.0 * LANE + AGES, LANE)] {
        svg.rect(
            "lane",
            [At::Part(0.0), At::Px(y)],
            [At::Part(1.0), At::Px(height)],
        );
    }
    for ns in ages() {
        let y = At::Px(y_of_age(ns));
        svg.line("grid", [At::Part(0.0), y], [At::Part(1.0), y]);
    }
    for change in axis::ticks(scale) {
        let class = if axis::is_zero(change) {
            "zero"
        } else {
            "grid"
        };
        let x = x(scale, 1.0 + change);
        svg.line(class, [x, At::Px(top)], [x, At::Px(bottom)]);
        svg.label([x, At::Px(bottom + 16.0)], "middle", &factor(1.0 + change));
    }
    let words = match measure {
        Measure::Rate => format!("{metric}, times the baseline's"),
        Measure::Duration => format!("times as fast as the baseline ({metric})"),
        Measure::Amount => format!("the baseline's {metric}, divided by the variant's"),
    };
    svg.label([At::Part(1.0), At::Px(bottom + 36.0)], "end", &words);
}

/// `1.5×`
fn factor(value: f64) -> String {
    let text = match value {
        _ if value >= 9.95 => format::count(value),
        _ if (value * 10.0 - (value * 10.0).round()).abs() < 1e-6 => format!("{value:.1}"),
        _ => format!("{value:.3}").trim_end_matches('0').to_owned(),
    };
    format!("{}×", text.trim_end_matches(".0"))
}

fn front(svg: &mut Markup, scale: &Scale, places: &[Option<Place>], heights: &[f64]) {
    let at = |index: usize| {
        let place = places[index]?;
        Some([x(scale, place.factor), At::Px(heights[index])])
    };
    let mut points = unbeaten(places).into_iter().filter_map(at);
    let Some(mut from) = points.next() else {
        return;
    };
    for to in points {
        svg.line("front", from, to);
        from = to;
    }
}

fn mark(svg: &mut Markup, scale: &Scale, row: &Row, (place, y): (&Place, f64), class: &str) {
    let height = At::Px(y);
    let shape = match place.loss.0 {
        _ if place.by_class => "place uncut",
        Manner::Holes => "place holed",
        _ => "place",
    };
    let group = [("class", class)];
    svg.element("g", &group, |group| {
        group.leaf("title", &[], &told(row, place));
        if let Some([low, high]) = place.interval {
            group.line(
                "reach-line",
                [x(scale, low), height],
                [x(scale, high), height],
            );
        }
        group.circle(shape, [x(scale, place.factor), height], "6");
    });
}

/// `sync=off: 2.1×; 3,618 of 3,618 lost, the oldest 7.96 s old`
fn told(row: &Row, place: &Place) -> String {
    let loss = match &row.loss {
        Some(loss) => format!("{} lost, the oldest {} old", loss.worst, loss.oldest),
        None => "not cut".to_owned(),
    };
    format!("{}: {:.2}×; {loss}", row.gain.name, place.factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_would_cover_each_other_stand_one_above_the_other() {
        let place = |factor, manner| {
            Some(Place {
                factor,
                interval: None,
                gains: true,
                loss: (manner, 0),
                by_class: false,
            })
        };
        let damaged = Manner::Damaged;
        let places = [
            place(1.0, Manner::Nothing),
            place(2.0, damaged),
            None,
            place(2.001, damaged),
            place(3.0, damaged),
        ];
        let lane = y((damaged, 0));
        let nothing = y((Manner::Nothing, 0));
        let expected = [nothing, lane - MARK / 2.0, 0.0, lane + MARK / 2.0, lane];
        assert_eq!(heights(&scale(&places), &places), expected);
    }
}
