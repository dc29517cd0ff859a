//! The chart of a scan as a file of its own, which follows the reader's light or dark screen.

use refit_lab::Scan;

use super::answer;
use super::chart::{Chart, FOOT, HEIGHT, about};
use crate::fold::fold;
use crate::format::shortened;
use crate::markup::At;
use crate::picture::{HEAD, MARGIN, WIDTH, at, lines, sheet, text};
use crate::title::title;

/// In pixels, as all that follows: where the field begins; the labels of the axis stand to the left of it.
const LEFT: f64 = 92.0;
const LINE: f64 = 24.0;
const TEXT: f64 = 20.0;
/// Characters that fit into a line of the answer.
const ANSWER: usize = 112;
/// Characters of a name in the legend.
const NAME: usize = 90;

/// The picture.
#[must_use]
pub fn svg(scan: &Scan) -> String {
    let chart = Chart::new(scan);
    let first = scan
        .points
        .first()
        .map(|point| &point.comparison.experiment);
    let title = first.map(title).unwrap_or_default();
    let head = fold(&title.replace('`', ""), HEAD);
    let answer = fold(&answer(scan).replace('`', ""), ANSWER);
    let about = fold(&about(scan, &chart), ANSWER + 8);
    let headed = 10.0 + LINE * head.len() as f64;
    let answered = headed + 26.0 + TEXT * answer.len() as f64;
    let named = answered + LINE * chart.names.len() as f64;
    let top = named + 16.0;
    let told = top + HEIGHT + FOOT + TEXT;
    let height = told + TEXT * about.len() as f64;
    let (left, right) = (LEFT, WIDTH - MARGIN);
    let name = format!("effect at each value of {}: {title}", scan.setting);
    let style = concat!(include_str!("picture.css"), include_str!("chart.css"));
    sheet(&name, height, style, |svg| {
        lines(svg, "picture-head", 34.0, &head, LINE);
        lines(svg, "picture-answer", headed + 26.0, &answer, TEXT);
        for (candidate, name) in chart.names.iter().enumerate() {
            let y = answered + LINE * (candidate as f64 + 0.6);
            svg.element("g", &[("class", &chart.colour(candidate))], |group| {
                group.circle("estimate", at([left + 5.0, y - 5.0]), "5");
            });
            text(
                svg,
                "name",
                "start",
                [left + 18.0, y],
                &shortened(name, NAME),
            );
        }
        for (change, label) in chart.labels() {
            let y = top + chart.height(change) + 4.0;
            text(svg, "", "end", [left - 10.0, y], &label);
        }
        chart.draw(svg, top, |part| At::Px(left + (right - left) * part));
        lines(svg, "", told, &about, TEXT);
    })
}
