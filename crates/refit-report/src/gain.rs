//! How much better a variant is, in words that are no surer than its interval.

use refit_lab::EffectRecord;
use refit_stats::Measure;

use crate::format;

/// An interval whose far end is more than this times its near end is told beside the factor.
const WIDE: f64 = 1.25;

/// In place of a factor that is not a number, or without end.
const UNKNOWN: &str = "an unknown factor";

/// Where the near end of its interval is not beyond this factor, a gain is not told as one number.
const SMALL: f64 = 1.05;

/// What a gain is, in words: `is 1.9× faster (wall −47 %, safe)`; of an amount `takes 20 % less (…)`. `details`: what stands
/// between the parentheses. Where the interval is wide, its ends stand there too; where it comes near to nothing, they
/// take the place of the number: `is faster, by 1.01× to 12× (…)`.
pub fn gives(effect: &EffectRecord, measure: Measure, details: &str) -> String {
    let (is, one): (_, fn(f64) -> String) = match measure {
        Measure::Amount => ("takes less", saved),
        Measure::Rate | Measure::Duration => ("is faster", times),
    };
    let factor = factor(measure, effect.change);
    let gives = match measure {
        Measure::Amount => format!("takes {} less", one(factor)),
        _ if !factor.is_finite() => format!("{is} by {UNKNOWN}"),
        Measure::Rate | Measure::Duration => format!("is {} faster", one(factor)),
    };
    match ends(effect, measure) {
        None => format!("{is} ({details})"),
        Some([near, far]) if near <= SMALL => {
            format!("{is}, by {} to {} ({details})", one(near), one(far))
        }
        Some([near, far]) if far > WIDE * near => {
            format!("{gives} ({} to {}; {details})", one(near), one(far))
        }
        Some(_) => format!("{gives} ({details})"),
    }
}

/// The ends of its interval as factors, the smaller first; `None` without one.
fn ends(effect: &EffectRecord, measure: Measure) -> Option<[f64; 2]> {
    let mut ends = effect.interval?.map(|end| factor(measure, end));
    ends.sort_unstable_by(f64::total_cmp);
    Some(ends)
}

/// `1.9×`.
fn times(factor: f64) -> String {
    match factor {
        _ if !factor.is_finite() => UNKNOWN.to_owned(),
        _ if factor < 1.095 => format!("{factor:.2}×"),
        _ if factor < 9.95 => format!("{factor:.1}×"),
        _ => format!("{}×", format::count(factor)),
    }
}

/// What an amount becomes less by.
fn saved(factor: f64) -> String {
    format::magnitude(1.0 - 1.0 / factor)
}

/// How many times as good as the baseline, from a change of the metric.
pub fn factor(measure: Measure, change: f64) -> f64 {
    match measure {
        Measure::Rate => 1.0 + change,
        Measure::Duration | Measure::Amount => 1.0 / (1.0 + change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_carries_its_doubt() {
        let gives = |change: f64, interval: [f64; 2], measure| {
            let effect = EffectRecord {
                change,
                interval: Some(interval),
                ..EffectRecord::default()
            };
            gives(&effect, measure, "d")
        };
        let rate = |change, interval| gives(change, interval, Measure::Rate);
        assert_eq!(rate(2.5, [2.4, 2.6]), "is 3.5× faster (d)");
        assert_eq!(rate(2.5, [1.2, 4.6]), "is 3.5× faster (2.2× to 5.6×; d)");
        let endless = gives(-1.0, [-1.0, -0.9], Measure::Duration);
        assert_eq!(
            endless,
            "is faster by an unknown factor (10× to an unknown factor; d)"
        );
        assert_eq!(rate(2.5, [0.008, 10.89]), "is faster, by 1.01× to 12× (d)");
        assert_eq!(rate(0.03, [0.02, 0.04]), "is faster, by 1.02× to 1.04× (d)");
        let time = |change, interval| gives(change, interval, Measure::Duration);
        assert_eq!(time(-0.5, [-0.51, -0.49]), "is 2.0× faster (d)");
        assert_eq!(time(-0.5, [-0.6, -0.2]), "is 2.0× faster (1.2× to 2.5×; d)");
        let amount = |change, interval| gives(change, interval, Measure::Amount);
        assert_eq!(amount(-0.2, [-0.21, -0.19]), "takes 20 % less (d)");
        assert_eq!(
            amount(-0.2, [-0.4, -0.1]),
            "takes 20 % less (10 % to 40 %; d)"
        );
        assert_eq!(
            amount(-0.02, [-0.03, -0.01]),
            "takes less, by 1 % to 3 % (d)"
        );
    }
}
