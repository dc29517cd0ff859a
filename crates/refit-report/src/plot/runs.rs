//! The runs themselves, and what was concluded from them.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord};
use refit_stats::OVERALL_ALPHA;

use super::axis;
use super::frame::{Frame, GREY, LEFT, MARGIN, SMALL, TEXT, WIDTH, colour};
use super::strip::{Kind, Mark, Painter, Strip};
use crate::bar::is_drawable;
use crate::format;
use crate::svg::Anchor;
use crate::svg::Svg;

/// Opacity of a run that counts.
const COUNTED: &str = "0.85";
/// Width of one interval, and the least width with room for its number.
const SLOT: f64 = 64.0;
const LABELLED: f64 = 54.0;
/// Width of all intervals together, at most.
const PANEL: f64 = 330.0;
/// Distance between the runs and the intervals.
const GAP: f64 = 16.0;

/// Effects that have an interval to draw.
fn shown(comparison: &Comparison) -> Vec<(&EffectRecord, [f64; 2])> {
    let takes_part = |effect: &&EffectRecord| {
        let variant = comparison.experiment.variants.get(effect.variant);
        effect.metric == comparison.experiment.main
            && variant.is_some_and(|variant| variant.disqualified.is_none())
    };
    let effects = comparison.effects.iter().filter(takes_part);
    effects
        .filter_map(|effect| Some((effect, effect.interval?)))
        .filter(|(effect, _)| is_drawable(effect))
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

/// The sheet of `--svg`.
struct Sheet<'a> {
    svg: &'a mut Svg,
    experiment: &'a Experiment,
    frame: &'a Frame,
    /// Of a dot.
    radius: f64,
}

impl Sheet<'_> {
    fn x(&self, part: f64) -> f64 {
        LEFT + part * (self.frame.right - LEFT)
    }

    fn on_sheet(&self, [part, y]: [f64; 2]) -> [f64; 2] {
        [self.x(part), y]
    }
}

impl Painter for Sheet<'_> {
    fn band(&mut self, [upper, lower]: [f64; 2]) {
        // On into the intervals, which have the same scale.
        let faint = [("opacity", "0.06")];
        let corner = [WIDTH - MARGIN, lower];
        self.svg.area([LEFT, upper], corner, "#000", &faint);
    }

    fn line(&mut self, change: f64, y: f64) {
        let stroke = if axis::is_zero(change) {
            GREY
        } else {
            "#e4e4e4"
        };
        self.svg.line([LEFT, y], [WIDTH - MARGIN, y], stroke, &[]);
        let label = axis::label(change);
        self.svg
            .text([LEFT - 8.0, y + 4.0], Anchor::End, TEXT, &label);
    }

    fn warm_up(&mut self, part: f64) {
        let corner = [self.x(part), self.frame.bottom];
        let faint = [("opacity", "0.04")];
        self.svg
            .area([LEFT, self.frame.top], corner, "#000", &faint);
    }

    fn pairs(&mut self, variant: usize, pairs: &[[[f64; 2]; 2]]) {
        let ends = pairs
            .iter()
            .map(|ends| ends.map(|place| self.on_sheet(place)));
        let ends: Vec<[[f64; 2]; 2]> = ends.collect();
        let look = [("class", "pair"), ("stroke-opacity", "0.35")];
        let colour = colour(self.experiment, variant);
        self.svg
            .joined_dots(colour, (self.radius, COUNTED), &look, &ends);
    }

    /// Dots for what counts, faint ones for the warm-up, crosses for what failed. Those of round pairs are drawn already.
    fn marks(&mut self, variant: usize, kind: Kind, marks: &[&Mark]) {
        let (class, radius) = (kind.class(), self.radius);
        let colour = colour(self.experiment, variant);
        let single = marks.iter().filter(|mark| !mark.joined);
        let places = single.map(|mark| self.on_sheet(mark.place));
        let places: Vec<[f64; 2]> = places.collect();
        let opacity = match kind {
            Kind::WarmUp => "0.3",
            Kind::Counted => COUNTED,
            Kind::Failed => {
                let crosses = places.into_iter().flat_map(|[x, y]| {
                    let (left, right, top, bottom) =
                        (x - radius, x + radius, y - radius, y + radius);
                    [
                        [[left, top], [right, bottom]],
                        [[left, bottom], [right, top]],
                    ]
                });
                let crosses: Vec<_> = crosses.collect();
                let look = [("class", class), ("stroke-width", "1.5")];
                self.svg.lines(colour, &look, &crosses);
                return;
            }
        };
        let look = [("class", class), ("opacity", opacity)];
        self.svg.dots(colour, radius, &look, &places);
    }
}

/// All runs, with what stands around them.
pub fn draw(svg: &mut Svg, experiment: &Experiment, frame: &Frame) {
    let strip = Strip::new(experiment, frame, axis::ticks(&frame.scale));
    axis::draw(svg, frame, &strip);
    let radius = if strip.marks.len() <= 240 { 3.4 } else { 2.4 };
    strip.draw(&mut Sheet {
        svg,
        experiment,
        frame,
        radius,
    });
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
        "#fff",
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
        let ends = [upper, lower].map(|y| [[x - half, y], [x + half, y]]);
        svg.lines(fill, &[("stroke-width", "1.5")], &ends);
        svg.dot([x, frame.y(effect.change.ln_1p())], 4.5, &[("fill", fill)]);
        if slot >= LABELLED {
            let is_hidden = comparison.experiment.variants[effect.variant].role == Role::Hidden;
            let label = if is_hidden {
                "noise".to_owned()
            } else {
                format::percent(effect.change)
            };
            // No line of the axis that stands out goes through it.
            let above = upper - 8.0;
            let is_crossed = (above - SMALL.size - 1.0..above + 3.0).contains(&frame.y(0.0));
            let y = if above > frame.top + 8.0 && !is_crossed {
                above
            } else {
                lower + 16.0
            };
            svg.text([x, y], Anchor::Middle, SMALL, &label);
        }
    }
}
