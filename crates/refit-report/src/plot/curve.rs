//! Curves beneath the runs: a metric at several sizes, each point with its interval.

use refit_lab::experiment::{Experiment, SeriesRecord};
use refit_lab::{Comparison, Metric};

use super::axis::powers;
use super::frame::{GREY, LEFT, MARGIN, SMALL, TEXT, WIDTH, colour};
use crate::format;
use crate::series;
use crate::svg::Anchor;
use crate::svg::Svg;
use crate::values::{median, value};

/// Of one series, its title and its axis included.
pub const HEIGHT: f64 = 380.0;
/// Above and below the curves.
const ROOM: [f64; 2] = [40.0, 40.0];

/// A variant's value at one place.
struct Point {
    at: f64,
    value: f64,
    /// Ends of the interval; the baseline has none, for it is what the others are compared with.
    ends: Option<[f64; 2]>,
}

/// The series that have an axis.
pub fn drawn(experiment: &Experiment) -> impl Iterator<Item = &SeriesRecord> {
    let all = series::all(experiment).iter();
    all.filter(|series| !series.at.is_empty())
}

/// Draws a series with its upper edge at `top`.
pub fn draw(svg: &mut Svg, comparison: &Comparison, series: &SeriesRecord, top: f64) {
    let title = format!(
        "{} (both scales logarithmic; a bar is the interval of one ratio to the baseline, not of all at once)",
        series.title
    );
    svg.text([LEFT, top + 16.0], Anchor::Start, SMALL, &title);
    let curves: Vec<(usize, Vec<Point>)> = series::variants(&comparison.experiment)
        .map(|variant| (variant, points(comparison, series, variant)))
        .collect();
    let all = || curves.iter().flat_map(|(_, points)| points);
    let values = all().flat_map(|point| {
        [point.value]
            .into_iter()
            .chain(point.ends.into_iter().flatten())
    });
    let Some([low, high]) = span(values) else {
        return;
    };
    let Some([first, last]) = span(all().map(|point| point.at)) else {
        return;
    };
    let (upper, lower) = (top + ROOM[0], top + HEIGHT - ROOM[1]);
    let (left, right) = (LEFT + 16.0, WIDTH - MARGIN - 16.0);
    let part = |value: f64, low: f64, high: f64| {
        let breadth = (high / low).ln();
        if breadth > 0.0 {
            ((value / low).ln() / breadth).clamp(0.0, 1.0)
        } else {
            0.5
        }
    };
    let x = |at: f64| left + part(at, first, last) * (right - left);
    let y = |value: f64| lower - part(value, low, high) * (lower - upper);

    // A series is of one kind: its first metric's unit is that of all.
    let unit = series
        .metrics
        .first()
        .and_then(|name| comparison.experiment.metric(name));
    for tick in powers(low, high) {
        svg.line([LEFT, y(tick)], [WIDTH - MARGIN, y(tick)], "#e4e4e4", &[]);
        if let Some(metric) = &unit {
            let label = value(&comparison.experiment, metric, tick);
            svg.text([LEFT - 8.0, y(tick) + 4.0], Anchor::End, TEXT, &label);
        }
    }
    svg.line(
        [LEFT, lower + 4.0],
        [WIDTH - MARGIN, lower + 4.0],
        GREY,
        &[],
    );
    for (name, at) in series.metrics.iter().zip(&series.at) {
        let label = match series.named {
            true => name.clone(),
            false => axis_label(*at),
        };
        svg.text([x(*at), lower + 22.0], Anchor::Middle, TEXT, &label);
    }
    for (variant, points) in &curves {
        let stroke = colour(&comparison.experiment, *variant);
        for two in points.windows(2) {
            let ends = [
                [x(two[0].at), y(two[0].value)],
                [x(two[1].at), y(two[1].value)],
            ];
            svg.line(
                ends[0],
                ends[1],
                stroke,
                &[("stroke-width", "1.5"), ("class", "curve")],
            );
        }
        for point in points {
            if let Some([from, to]) = point.ends {
                let [x, from, to] = [x(point.at), y(from), y(to)];
                svg.line(
                    [x, from],
                    [x, to],
                    stroke,
                    &[("stroke-width", "4"), ("opacity", "0.4")],
                );
            }
            svg.dot(
                [x(point.at), y(point.value)],
                3.5,
                &[("fill", stroke), ("class", "point")],
            );
        }
    }
}

fn points(comparison: &Comparison, series: &SeriesRecord, variant: usize) -> Vec<Point> {
    let places = series.metrics.iter().zip(&series.at);
    let known = places.filter_map(|(name, at)| {
        point(
            comparison,
            &comparison.experiment.metric(name)?,
            variant,
            *at,
        )
    });
    known.collect()
}

/// None of what is not more than nothing: it has no place on a logarithmic scale.
fn point(comparison: &Comparison, metric: &Metric, variant: usize, at: f64) -> Option<Point> {
    let is_place = |value: &f64| value.is_finite() && *value > 0.0;
    let base = median(&comparison.experiment, 0, metric).filter(is_place)?;
    let effect = comparison
        .effects
        .get(variant, &metric.name)
        .filter(|_| variant > 0);
    let ends = effect.and_then(|effect| effect.interval);
    Some(Point {
        at: Some(at).filter(is_place)?,
        value: median(&comparison.experiment, variant, metric).filter(is_place)?,
        ends: ends
            .map(|ends| ends.map(|change| base * (1.0 + change)))
            .filter(|ends| ends.iter().all(is_place)),
    })
}

fn span(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    values.fold(None, |span, value| match span {
        None => Some([value, value]),
        Some([low, high]) => Some([low.min(value), high.max(value)]),
    })
}

fn axis_label(at: f64) -> String {
    if at.fract() == 0.0 {
        format::count(at)
    } else {
        format!("{at}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sample, svg};
    use roxmltree::Document;

    #[test]
    fn every_variant_has_a_curve_and_the_sheet_has_room_for_it() {
        let mut comparison = sample::service();
        let height = |text: &str| {
            let document = Document::parse(text).unwrap();
            document
                .root_element()
                .attribute("height")
                .unwrap()
                .parse::<f64>()
                .unwrap()
        };
        let plain = height(&svg(&comparison));
        comparison.experiment.recipe.as_mut().unwrap().series = vec![SeriesRecord {
            title: "by size".to_owned(),
            metrics: vec!["p99".to_owned(), "rate".to_owned()],
            at: vec![10.0, 4000.0],
            named: false,
        }];
        let text = svg(&comparison);
        let document = Document::parse(&text).unwrap();
        assert_eq!(height(&text), plain + HEIGHT);
        let with_class = |class: &str| {
            let nodes = document.descendants();
            let classes = nodes.filter_map(|node| node.attribute("class"));
            let of = classes.filter(|classes| classes.split(' ').any(|one| one == class));
            of.count()
        };
        let shown = series::variants(&comparison.experiment).count();
        assert!(shown > 1);
        assert_eq!(
            (with_class("curve"), with_class("point")),
            (shown, 2 * shown)
        );
        assert!(
            text.contains(">4,000<") && text.contains("by size"),
            "{text}"
        );
    }

    #[test]
    fn an_axis_of_percentiles_has_their_names() {
        let mut comparison = sample::service();
        comparison.experiment.recipe.as_mut().unwrap().series = vec![SeriesRecord {
            title: "by percentile".to_owned(),
            metrics: vec!["p99".to_owned(), "rate".to_owned()],
            at: vec![100.0, 4000.0],
            named: true,
        }];
        let text = svg(&comparison);
        assert!(
            text.contains(">p99<") && !text.contains(">4,000<"),
            "{text}"
        );
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(powers(1.7, 23.0), [2.0, 5.0, 10.0, 20.0]);
        assert_eq!(powers(0.5, 0.5), [0.5]);
        assert_eq!(span(std::iter::empty()), None);
    }
}
