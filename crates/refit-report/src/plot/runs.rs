//! The runs themselves, and what was concluded from them.

use std::collections::BTreeSet;

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord};
use refit_stats::OVERALL_ALPHA;

use super::strip::{Kind, Strip};
use super::{Anchor, Frame, LEFT, MARGIN, SMALL, WIDTH, colour};
use crate::bar::changes;
use crate::format;
use crate::svg::Svg;

/// Of one interval, and the least with room for its number.
const SLOT: f64 = 64.0;
const LABELLED: f64 = 54.0;
/// Of all intervals together, at most.
const PANEL: f64 = 330.0;
/// Between the runs and the intervals.
const GAP: f64 = 16.0;

/// Effects that have an interval to draw.
fn shown(comparison: &Comparison) -> Vec<(&EffectRecord, [f64; 2])> {
    let takes_part = |effect: &&EffectRecord| {
        let variant = comparison.experiment.variants.get(effect.variant);
        effect.metric == comparison.experiment.main
            && variant.is_some_and(|variant| variant.disqualified.is_none())
    };
    let effects = comparison.effects.iter().filter(takes_part);
    let is_a_change = |change: f64| change > -1.0 && change.is_finite();
    effects
        .filter_map(|effect| Some((effect, effect.interval?)))
        .filter(|(effect, _)| changes(effect).all(is_a_change))
        .collect()
}

fn slot(intervals: usize) -> f64 {
    SLOT.min(PANEL / intervals.max(1) as f64)
}

/// What the intervals take at the right.
pub fn panel_width(comparison: &Comparison) -> f64 {
    match shown(comparison).len() {
        0 => 0.0,
        n => GAP + slot(n) * n as f64,
    }
}

/// Every run: dots for those that count, faint ones for the warm-up, crosses
/// for those that failed.
pub fn draw(svg: &mut Svg, experiment: &Experiment, frame: &Frame, strip: &Strip) {
    let x = |part: f64| LEFT + part * (frame.right - LEFT);
    let on_sheet = |[part, y]: [f64; 2]| [x(part), y];
    if strip.warm_up > 0.0 {
        let corner = [x(strip.warm_up), frame.bottom];
        let faint = [("opacity", "0.04")];
        svg.area([LEFT, frame.top], corner, "#000000", &faint);
    }
    let variants: BTreeSet<usize> = strip.marks.iter().map(|mark| mark.variant).collect();
    for variant in &variants {
        let pairs = strip.pairs.iter().filter(|(of, _)| of == variant);
        let ends: Vec<[[f64; 2]; 2]> = pairs.map(|(_, ends)| ends.map(on_sheet)).collect();
        let look = [("opacity", "0.35")];
        svg.lines("pair", colour(experiment, *variant), &look, &ends);
    }
    let radius = if strip.marks.len() <= 240 { 3.4 } else { 2.4 };
    for variant in &variants {
        let of = |kind: Kind| -> Vec<[f64; 2]> {
            let marks = strip.marks.iter();
            marks
                .filter(|mark| mark.variant == *variant && mark.kind == kind)
                .map(|mark| on_sheet(mark.place))
                .collect()
        };
        let colour = colour(experiment, *variant);
        for (kind, opacity) in [(Kind::WarmUp, "0.3"), (Kind::Counted, "0.85")] {
            svg.dots(kind.class(), radius, colour, opacity, &of(kind));
        }
        let crosses = of(Kind::Failed).into_iter().flat_map(|[x, y]| {
            let (left, right, top, bottom) = (x - radius, x + radius, y - radius, y + radius);
            [
                [[left, top], [right, bottom]],
                [[left, bottom], [right, top]],
            ]
        });
        let look = [("stroke-width", "1.5")];
        let crosses: Vec<_> = crosses.collect();
        svg.lines(Kind::Failed.class(), colour, &look, &crosses);
    }
}

/// Each interval as a band with its estimate, right of the runs and on their scale.
pub fn intervals(svg: &mut Svg, comparison: &Comparison, frame: &Frame) {
    let shown = shown(comparison);
    if shown.is_empty() {
        return;
    }
    let slot = slot(shown.len());
    let left = WIDTH - MARGIN - slot * shown.len() as f64;
    let border = frame.right + 0.5 * GAP;
    svg.line(
        [border, frame.top],
        [border, frame.bottom],
        "#ffffff",
        &[("stroke-width", "8")],
    );
    let title = format!("{} intervals", format::magnitude(1.0 - OVERALL_ALPHA));
    svg.text([left, frame.top - 12.0], Anchor::Start, SMALL, &title);
    for (i, (effect, [low, high])) in shown.iter().enumerate() {
        let x = left + slot * (i as f64 + 0.5);
        let fill = colour(&comparison.experiment, effect.variant);
        let (upper, lower) = (frame.y(high.ln_1p()), frame.y(low.ln_1p()));
        let half = slot * 0.22;
        let look = [("class", "interval"), ("opacity", "0.3")];
        svg.area([x - half, upper], [x + half, lower], fill, &look);
        for y in [upper, lower] {
            svg.line(
                [x - half, y],
                [x + half, y],
                fill,
                &[("stroke-width", "1.5")],
            );
        }
        svg.dot([x, frame.y(effect.change.ln_1p())], 4.5, &[("fill", fill)]);
        if slot >= LABELLED {
            let is_hidden = comparison.experiment.variants[effect.variant].role == Role::Hidden;
            let label = if is_hidden {
                "noise".to_owned()
            } else {
                format::percent(effect.change)
            };
            let y = if upper - 8.0 > frame.top + 8.0 {
                upper - 8.0
            } else {
                lower + 16.0
            };
            svg.text([x, y], Anchor::Middle, SMALL, &label);
        }
    }
}
