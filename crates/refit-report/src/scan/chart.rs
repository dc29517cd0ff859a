//! The chart of a scan: the effect of each candidate at each value of the setting, with its interval.

use refit_lab::{EffectRecord, Scan};
use refit_stats::Measure;

use super::{Word, names};
use crate::bar::{Scale, changes, is_drawable};
use crate::format;
use crate::markup::{At, Markup, number};
use crate::palette::COLOURS;
use crate::plot::axis;
use crate::standing::{candidates, standing};

/// Height of the field in which the effects lie, in pixels.
pub const HEIGHT: f64 = 280.0;
/// What stands below the field: the values.
pub const FOOT: f64 = 26.0;
/// Between the field's edge and the first and last value, as a part of its breadth.
const EDGE: f64 = 0.07;
/// Between the effects of two candidates at one value, as a part of the breadth.
const BESIDE: f64 = 0.02;
/// Breadth of a character of a value on a narrow screen, as a part of the breadth.
const CHARACTER: f64 = 0.027;
/// Characters of a value that are shown.
const LONGEST: usize = 12;

/// What is drawn.
pub struct Chart {
    /// The candidates' names, in the order of their colours.
    pub names: Vec<String>,
    /// What height stands for.
    pub scale: Scale,
    /// The values are numbers, and lie where they are on a logarithmic scale.
    pub has_scale: bool,
    /// Each value and where it lies, from 0 to 1.
    places: Vec<(String, f64)>,
    /// Of every candidate, from the left to the right.
    effects: Vec<Vec<Effect>>,
    /// Within ± this relative change there is no effect.
    delta: f64,
}

/// The effect of a candidate at a value.
struct Effect {
    part: f64,
    record: EffectRecord,
    settled: bool,
    title: String,
}

impl Chart {
    /// The effects of the main metric; a candidate that was disqualified or has no effect yet is left out.
    pub fn new(scan: &Scan) -> Chart {
        let names = names(scan);
        let (has_scale, places) = places(scan);
        let gap = places.windows(2).map(|two| two[1].1 - two[0].1);
        let beside = gap.fold(BESIDE * names.len() as f64, f64::min) / names.len().max(1) as f64;
        let shift = |at: usize| beside.max(0.0) * (at as f64 - (names.len() as f64 - 1.0) / 2.0);
        let effects: Vec<Vec<Effect>> = names
            .iter()
            .enumerate()
            .map(|(at, name)| of_candidate(scan, name, &places, shift(at)))
            .collect();
        let delta = scan.points.first();
        let delta = delta.map_or(0.0, |point| point.comparison.experiment.delta);
        let all = effects.iter().flatten();
        Chart {
            scale: Scale::around(all.flat_map(|effect| changes(&effect.record)), delta),
            names,
            has_scale,
            places,
            effects,
            delta,
        }
    }

    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.effects.iter().all(Vec::is_empty)
    }

    /// The class of a candidate's colour.
    pub fn colour(&self, candidate: usize) -> String {
        format!("v{}", candidate % COLOURS.len())
    }

    /// Height of a change, below the field's upper edge.
    pub fn height(&self, change: f64) -> f64 {
        HEIGHT * (1.0 - self.scale.part(change.ln_1p()))
    }

    /// Changes that have a line, and what stands beside it.
    pub fn labels(&self) -> impl Iterator<Item = (f64, String)> {
        let ticks = axis::ticks(&self.scale).into_iter();
        ticks.map(|change| (change, axis::label(change)))
    }

    /// Draws the field with its upper edge at `top`; `x` tells where a part of the breadth lies.
    pub fn draw(&self, svg: &mut Markup, top: f64, x: impl Fn(f64) -> At) {
        let y = |change: f64| At::Px(top + self.height(change));
        let (left, right) = (x(0.0), x(1.0));
        let margin = self.delta.abs();
        let [upper, lower] = [margin, -margin].map(|change| self.height(change));
        let breadth = match (left, right) {
            (At::Px(from), At::Px(to)) => At::Px(to - from),
            _ => right,
        };
        let size = [breadth, At::Px(lower - upper)];
        svg.rect("band", [left, At::Px(top + upper)], size);
        for (change, _) in self.labels() {
            let class = match axis::is_zero(change) {
                true => "zero",
                false => "grid",
            };
            svg.line(class, [left, y(change)], [right, y(change)]);
        }
        let mut last = f64::NEG_INFINITY;
        for (value, part) in &self.places {
            let value = format::shortened(value, LONGEST);
            let breadth = CHARACTER * (value.chars().count() as f64 + 1.0);
            // A value that would touch the one before it is left out; its effects are in the table.
            if part - last >= breadth {
                let place = [x(*part), At::Px(top + HEIGHT + FOOT - 8.0)];
                svg.label(place, "middle", &value);
                last = *part;
            }
        }
        for (candidate, effects) in self.effects.iter().enumerate() {
            svg.element("g", &[("class", &self.colour(candidate))], |group| {
                for two in effects.windows(2).filter(|_| self.has_scale) {
                    let ends = [0, 1].map(|at| [x(two[at].part), y(two[at].record.change)]);
                    group.line("course", ends[0], ends[1]);
                }
                for effect in effects {
                    let at = x(effect.part);
                    if let Some([low, high]) = effect.record.interval {
                        group.line("reach", [at, y(low)], [at, y(high)]);
                    }
                    let class = match effect.settled {
                        true => "estimate",
                        false => "estimate undecided",
                    };
                    dot(group, class, [at, y(effect.record.change)], &effect.title);
                }
            });
        }
    }
}

/// A dot that tells what it is where the pointer rests.
fn dot(svg: &mut Markup, class: &str, place: [At; 2], title: &str) {
    let [x, y] = place.map(At::text);
    let attributes = [("class", class), ("cx", &x), ("cy", &y), ("r", "5")];
    svg.element("circle", &attributes, |dot| dot.leaf("title", &[], title));
}

/// Where each value that was measured lies: numbers on a logarithmic scale, others side by side as they were named.
fn places(scan: &Scan) -> (bool, Vec<(String, f64)>) {
    let values = scan.points.iter().map(|point| point.value.clone());
    let logs: Option<Vec<f64>> = scan
        .points
        .iter()
        // 200/s is a rate.
        .map(|point| point.value.trim_end_matches("/s").parse::<f64>().ok())
        .map(|value| value.filter(|value| value.is_finite() && *value > 0.0))
        .map(|value| value.map(f64::ln))
        .collect();
    let has_scale = logs.is_some();
    let at = logs.unwrap_or_else(|| (0..scan.points.len()).map(|at| at as f64).collect());
    let (low, high) = (at.iter()).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
        (low.min(*at), high.max(*at))
    });
    let part = |at: f64| match high > low {
        true => EDGE + (1.0 - 2.0 * EDGE) * (at - low) / (high - low),
        false => 0.5,
    };
    let mut places: Vec<(String, f64)> = values.zip(at.into_iter().map(part)).collect();
    places.sort_by(|one, other| one.1.total_cmp(&other.1));
    (has_scale, places)
}

fn of_candidate(scan: &Scan, name: &str, places: &[(String, f64)], shift: f64) -> Vec<Effect> {
    let effect = |(value, part): &(String, f64)| {
        let point = scan.points.iter().find(|point| point.value == *value)?;
        let row = candidates(&point.comparison)
            .into_iter()
            .find(|row| row.name == name)?;
        let record = row.effect.filter(|effect| is_drawable(effect))?;
        let word = Word::of(standing(&point.comparison, &row));
        Some(Effect {
            part: part + shift,
            record: record.clone(),
            settled: word.is_decided(),
            title: format!(
                "{} at {}={value}: {} {}",
                name, scan.setting, row.change, row.interval
            ),
        })
    };
    places.iter().filter_map(effect).collect()
}

/// What the picture shows, as a sentence.
pub fn about(scan: &Scan, chart: &Chart) -> String {
    let Some(first) = scan.points.first() else {
        return String::new();
    };
    let metric = first.comparison.experiment.main_metric();
    let better = match metric.measure {
        Measure::Rate => "higher is faster",
        Measure::Duration => "lower is faster",
        Measure::Amount => "lower is less",
    };
    let scales = match chart.has_scale {
        true => "both scales logarithmic",
        false => "logarithmic scale",
    };
    format!(
        "Change of {} from the baseline, at each value of {} ({better}; {scales}). A bar is the \
         interval; a hollow dot is not decided; what lies within the grey band (±{}) counts as the same.",
        metric.name,
        scan.setting,
        format::margin(chart.delta)
    )
}

/// Height of a picture of this field, as an attribute.
pub fn height() -> String {
    number(HEIGHT + FOOT)
}
