//! What the interval of an effect proves.
//!
//! `Same` comes first: an interval within ±δ is `same` even where it excludes 0. With enough round pairs any
//! difference, however idle, would be proven; what such an interval proves is that it does not matter.
//! Otherwise an interval on one side of 0 decides, and everything else is inconclusive and says what would
//! help. "No difference was found" is not among the verdicts.

use crate::effect::{Effect, Interval, Method};
use crate::signed_rank::pairs_needed;
use crate::student::{MANY, two_sided_quantile};

/// Differences up to 1 % are `same`, unless the user says otherwise.
pub const DEFAULT_DELTA: f64 = 0.01;

/// What a metric is, hence which words describe a change and which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// A time, less is better: `faster`, `slower`.
    Duration,
    /// Work done per time, more is better: `faster`, `slower`.
    Rate,
    /// A cost that is not time, such as bytes or calls, less is better: `less`, `more`.
    Amount,
}

/// What an interval proves of the metric itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The candidate's metric is smaller.
    Less,
    /// The candidate's metric is larger.
    More,
    /// They differ by at most δ.
    Same,
    /// None of these is proven yet.
    Inconclusive(Remedy),
}

/// What would make an inconclusive effect conclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Remedy {
    /// More of the same: this many round pairs in all, warm-up not counted, earn a verdict in about four
    /// comparisons of five, if this estimate and spread are right.
    RoundPairs(usize),
    /// More than [`ADVISABLE_TIMES`] times as many round pairs would be needed: rather a quieter machine, a longer
    /// run, or a larger δ.
    LessNoise {
        /// The round pairs it would take nevertheless.
        pairs: usize,
        /// Half-width of the interval now, as a relative change.
        half_width: f64,
    },
}

/// More round pairs are not advised when they are over this many times those already run.
pub const ADVISABLE_TIMES: usize = 10;

impl Verdict {
    /// Whether the candidate is proven better.
    pub fn is_gain(self, measure: Measure) -> bool {
        match measure {
            Measure::Duration | Measure::Amount => self == Self::Less,
            Measure::Rate => self == Self::More,
        }
    }

    /// Whether the comparison may stop here.
    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Inconclusive(_))
    }
}

/// The verdict on `effect`, where a relative difference of up to `delta` does not matter. On the log scale
/// that is ±ln(1 + delta), so exchanging candidate and baseline exchanges the words and nothing else, and a
/// printed `same` interval never reaches beyond ±delta.
pub fn verdict(effect: &Effect, delta: f64) -> Verdict {
    let margin = delta.ln_1p();
    let Some(interval) = effect.interval else {
        return Verdict::Inconclusive(Remedy::RoundPairs(pairs_needed(effect.levels.ranks)));
    };
    if -margin <= interval.low && interval.high <= margin {
        Verdict::Same
    } else if interval.high < 0.0 {
        Verdict::Less
    } else if interval.low > 0.0 {
        Verdict::More
    } else {
        Verdict::Inconclusive(remedy(effect, &interval, margin))
    }
}

/// The half-width shrinks with the root of the round pairs. It has to come down to the estimate's distance
/// from 0 or to its distance from the nearer margin, whichever is easier: δ for an estimate of 0, δ/2 for one
/// halfway. The next estimate scatters too, but mostly away from that worst case: in simulations 72–90 %
/// were settled by the advised number, so nothing is added to it.
///
/// Student's interval of a few round pairs is much wider than the root alone would have it: what counts is how
/// wide that of ranks would be with the same spread.
fn remedy(effect: &Effect, interval: &Interval, margin: f64) -> Remedy {
    let point = effect.log_ratio.abs();
    let levels = effect.levels;
    let half_width = match interval.method {
        Method::SignedRanks | Method::SignedRanksOfBoth => interval.half_width(),
        Method::Student => {
            let early = two_sided_quantile(levels.early, effect.pairs - 1);
            interval.half_width() * two_sided_quantile(levels.ranks, MANY) / early
        }
    };
    let times = (half_width / point.max(margin - point)).powi(2).max(1.0);
    let pairs = ((effect.pairs as f64 * times).ceil() as usize).saturating_add(1);
    let pairs = pairs.max(pairs_needed(levels.ranks));
    if times <= ADVISABLE_TIMES as f64 {
        Remedy::RoundPairs(pairs)
    } else {
        Remedy::LessNoise {
            pairs,
            half_width: half_width.exp_m1(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::effect_of;

    fn of(low: f64, high: f64) -> Verdict {
        let interval = Some(Interval {
            low,
            high,
            level: 0.95,
            method: Method::SignedRanks,
        });
        let effect = Effect {
            log_ratio: 0.5 * (low + high),
            interval,
            pairs: 20,
            levels: crate::Levels {
                ranks: 0.05,
                early: 0.0,
            },
        };
        verdict(&effect, DEFAULT_DELTA)
    }

    #[test]
    fn the_interval_alone_decides() {
        assert_eq!(of(-0.03, -0.001), Verdict::Less);
        assert_eq!(of(0.001, 0.03), Verdict::More);
        assert_eq!(of(-0.005, 0.005), Verdict::Same);
        assert_eq!(of(-0.009, -0.001), Verdict::Same);
        assert_eq!(of(0.0, 0.0), Verdict::Same);
        assert!(!of(-0.02, 0.001).is_settled());
        assert!(!of(-0.02, 0.0).is_settled());
    }

    #[test]
    fn exchanging_both_sides_exchanges_the_words() {
        let edge = 0.01_f64.ln_1p();
        assert_eq!(of(-edge, edge), Verdict::Same);
        assert!(!of(-edge - 1e-9, edge).is_settled());
        assert!(!of(-edge, edge + 1e-9).is_settled());
    }

    #[test]
    fn each_measure_has_its_better_side() {
        use Measure::{Amount, Duration, Rate};
        let gains = |v: Verdict| [Duration, Rate, Amount].map(|m| v.is_gain(m));
        assert_eq!(gains(Verdict::Less), [true, false, true]);
        assert_eq!(gains(Verdict::More), [false, true, false]);
        assert_eq!(gains(Verdict::Same), [false; 3]);
    }

    #[test]
    fn too_few_pairs_ask_for_the_fewest_that_can() {
        let effect = effect_of(&[0.1, 0.2], 0.05).unwrap();
        let remedy = Remedy::RoundPairs(6);
        assert_eq!(verdict(&effect, 0.01), Verdict::Inconclusive(remedy));
    }

    #[test]
    fn the_remedy_grows_with_the_square_of_the_width_and_gives_up() {
        let pairs = |low, high| match of(low, high) {
            Verdict::Inconclusive(Remedy::RoundPairs(n)) => Some(n),
            _ => None,
        };
        let (near, far) = (
            pairs(-0.0101, 0.0101).unwrap(),
            pairs(-0.0202, 0.0202).unwrap(),
        );
        assert_eq!(near, 22);
        assert_eq!(far, 84);
        assert_eq!(pairs(-0.1, 0.1), None);
        let noisy = of(-0.1, 0.1);
        assert!(matches!(
            noisy,
            Verdict::Inconclusive(Remedy::LessNoise {
                pairs: 2000..,
                half_width: 0.1..
            })
        ));
    }

    #[test]
    fn with_no_margin_at_all_there_is_still_an_answer() {
        let effect = effect_of(&[-1.0, 1.0, -2.0, 2.0, -3.0, 3.0, 0.0], 0.05).unwrap();
        let verdict = verdict(&effect, 0.0);
        assert!(matches!(
            verdict,
            Verdict::Inconclusive(Remedy::LessNoise { .. })
        ));
    }
}
