//! The picture of gain and loss as a file of its own, which follows the reader's light or dark
//! screen.

use refit_crash::CrashReport;
use refit_lab::Comparison;
use refit_lab::experiment::Role;

use super::Proof;
use super::picture::{ABOUT, HEIGHT, STYLE, drawn, field_of, has_place, labels};
use super::row::rows;
use super::sentence::sentence;
use crate::fold::fold;
use crate::format::shortened;
use crate::html::colour;
use crate::markup::number;
use crate::picture::{HEAD, MARGIN, WIDTH, at, lines, sheet, text};
use crate::title::title;

/// Of the names of ages and lanes, in pixels, as all that follows.
const LABELS: f64 = 76.0;
const LINE: f64 = 20.0;
/// Characters that fit into a line of the answer, and of what stands below.
const ANSWER: usize = 118;
const BELOW: usize = 132;
/// Names of variants in a line.
const NAMES: usize = 3;
/// Characters of such a name.
const NAME: usize = 32;

/// The picture; `None` where fewer than two variants have both a gain and a loss.
pub fn svg(comparison: &Comparison, proof: &Proof, report: &CrashReport) -> Option<String> {
    let rows = rows(comparison, Some(report));
    let places = drawn(comparison, &rows)?;
    let answer = sentence(comparison, proof, &rows).replace('`', "");
    let answer = fold(&answer, ANSWER);
    let names = names(comparison, |variant| has_place(&rows, &places, variant));
    let below = fold(ABOUT, BELOW);
    let title = title(&comparison.experiment);
    let head = fold(&title, HEAD);
    let headed = 10.0 + 24.0 * head.len() as f64;
    let answered = headed + 24.0 + LINE * answer.len() as f64;
    let named = answered + LINE * names.len().div_ceil(NAMES) as f64;
    let top = named + 16.0;
    let height = top + HEIGHT + 8.0 + LINE * below.len() as f64 + MARGIN / 2.0;

    let about = format!("gain and loss of each variant: {title}");
    Some(sheet(&about, height, STYLE, |svg| {
        lines(svg, "picture-head", 34.0, &head, 24.0);
        lines(svg, "picture-answer", headed + 26.0, &answer, LINE);
        for (index, (class, name)) in names.iter().enumerate() {
            let column = (index % NAMES) as f64 * (WIDTH - 2.0 * MARGIN) / NAMES as f64;
            let y = answered + LINE * (index / NAMES) as f64;
            svg.element("g", &[("class", class)], |group| {
                group.circle("place", at([MARGIN + column + 6.0, y + 4.0]), "6");
                let place = [MARGIN + column + 18.0, y + 8.0];
                text(group, "picture-name", "start", place, name);
            });
        }
        for (y, label) in labels() {
            svg.label(at([MARGIN + LABELS - 8.0, top + y + 4.0]), "end", &label);
        }
        let field = [
            ("x", &*number(MARGIN + LABELS)),
            ("y", &number(top)),
            ("width", &number(WIDTH - 2.0 * MARGIN - LABELS)),
            ("height", &number(HEIGHT)),
        ];
        svg.element("svg", &field, |field| {
            field_of(field, comparison, &rows, &places);
        });
        lines(svg, "", top + HEIGHT + LINE, &below, LINE);
    }))
}

/// Class and name of each variant that is drawn.
fn names(comparison: &Comparison, is_drawn: impl Fn(usize) -> bool) -> Vec<(String, String)> {
    let experiment = &comparison.experiment;
    let variants = experiment.variants.iter().enumerate();
    variants
        .filter(|(index, variant)| variant.role != Role::Hidden && is_drawn(*index))
        .map(|(index, variant)| {
            let class = colour::class(experiment, index);
            (class, shortened(&variant.name, NAME))
        })
        .collect()
}
