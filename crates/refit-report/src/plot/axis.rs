//! The frame around the runs: what height and breadth stand for.

use refit_stats::Measure;

use super::frame::{Frame, LEFT, SMALL};
use super::strip::Strip;
use crate::bar::Scale;
use crate::format;
use crate::svg::Anchor;
use crate::svg::Svg;

/// Steps between relative changes.
const STEPS: [f64; 11] = [
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0,
];
/// No more lines than this.
const MOST: usize = 9;

/// Relative changes that get a line: even steps within a factor of four, else
/// ratios of 1, 2 and 5, else powers of ten. No change is among them.
pub fn ticks(scale: &Scale) -> Vec<f64> {
    let (low, high) = (scale.low.exp_m1(), scale.high.exp_m1());
    let even = |step: &f64| {
        let range = (low / step).ceil() as i64..=(high / step).floor() as i64;
        range.map(|i| i as f64 * step).collect::<Vec<_>>()
    };
    if scale.high - scale.low < 4.0_f64.ln() {
        let fits = STEPS
            .iter()
            .find(|step| (high - low) / *step <= MOST as f64);
        return even(fits.unwrap_or(&STEPS[STEPS.len() - 1]));
    }
    let ratios = powers(1.0 + low, 1.0 + high);
    ratios.into_iter().map(|ratio| ratio - 1.0).collect()
}

/// Round values between two: 1, 2 and 5 of each power of ten, or the powers alone where
/// these are many.
pub fn powers(low: f64, high: f64) -> Vec<f64> {
    let of = |mantissas: &[f64]| -> Vec<f64> {
        let all = (-12..=18).flat_map(|n| mantissas.iter().map(move |m| m * 10.0_f64.powi(n)));
        all.filter(|tick| (low..=high).contains(tick)).collect()
    };
    let fine = of(&[1.0, 2.0, 5.0]);
    if fine.len() <= MOST + 3 {
        fine
    } else {
        of(&[1.0])
    }
}

/// What height stands for, and the number of runs.
pub fn draw(svg: &mut Svg, frame: &Frame, strip: &Strip) {
    let better = match frame.metric.measure {
        Measure::Rate => "; higher is better",
        Measure::Duration | Measure::Amount => "",
    };
    let title = format!(
        "{} of each run relative to the baseline's median (log scale{better})",
        frame.metric.name
    );
    svg.text([LEFT, frame.top - 12.0], Anchor::Start, SMALL, &title);
    let below = frame.bottom + 18.0;
    let [first, last] = &strip.ends;
    svg.text([LEFT, below], Anchor::Start, SMALL, first);
    svg.text([frame.right, below], Anchor::End, SMALL, last);
}

/// It is the line of the baseline.
pub fn is_zero(change: f64) -> bool {
    change.abs() < 1e-9
}

/// What stands beside a line.
pub fn label(change: f64) -> String {
    if is_zero(change) {
        "0".to_owned()
    } else if change < -0.99 - 1e-9 {
        format::percent(change)
    } else {
        format::percent_short(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> String {
        let scale = Scale {
            low: f64::ln_1p(low),
            high: f64::ln_1p(high),
        };
        let ticks = ticks(&scale);
        ticks.into_iter().map(label).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_have_no_change_among_them() {
        assert_eq!(
            labels(-0.015, 0.022),
            "−1.5 % −1.0 % −0.5 % 0 +0.5 % +1.0 % +1.5 % +2.0 %"
        );
        assert_eq!(labels(-0.62, 0.05), "−60 % −50 % −40 % −30 % −20 % −10 % 0");
        assert_eq!(labels(-0.9, 3.2), "−90 % −80 % −50 % 0 +100 %");
        assert_eq!(
            labels(-0.9981, 0.05),
            "−99.8 % −99.5 % −99 % −98 % −95 % −90 % −80 % −50 % 0"
        );
        assert_eq!(labels(-0.9992, 10.0), "−99.9 % −99 % −90 % 0 +900 %");
    }
}
