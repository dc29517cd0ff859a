//! Which of several candidates are worth more runs: successive halving, with an error that is paid for.
//!
//! A screening goes in stages, each with new runs and twice as many round pairs as the one before. After each, what is
//! *clearly* behind is dropped: its interval, as a ratio to a better candidate or to the baseline, lies on the worse
//! side. Nothing is dropped for an estimate alone. The levels share 5 % among all stages, candidates and tests, so that
//! the best candidate is lost in at most one screening of twenty.
//!
//! A screening proves nothing: its winner is the best of several, and its number is inflated by that. What is printed
//! comes from new runs of the winner (a confirmation), whose error is its own 5 %. `examples/calibration.rs` holds both.

use crate::effect::{Effect, Interval, Levels};
use crate::looks::OVERALL_ALPHA;
use crate::verdict::Measure;

/// Round pairs of the stages.
pub const STAGES: [usize; 4] = [3, 6, 12, 24];

/// The two-sided error of each interval by which a stage drops one of so many candidates. Each candidate has two tests
/// in a stage, of one side each: with the best other one, which may be any of them, and with the baseline.
pub fn stage_levels(candidates: usize) -> Levels {
    let each = OVERALL_ALPHA / (candidates.max(1) * STAGES.len()) as f64;
    Levels {
        ranks: each,
        early: each,
    }
}

/// What a stage says of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It stays.
    Stays,
    /// It gains at most what does not matter, or it loses.
    NoGain,
    /// It is clearly worse than this other candidate.
    Behind(usize),
}

/// The standing of each candidate, from its ratio to the baseline, `None` without one (it stays). `against` gives the
/// ratio of the first of two to the second. `may_beat`: whether the second may take the place of the first; a
/// candidate that risks more may not, however fast it is. `delta`: the relative gain that does not matter.
pub fn screen(
    to_baseline: &[Option<Effect>],
    against: impl Fn(usize, usize) -> Option<Effect>,
    may_beat: impl Fn(usize, usize) -> bool,
    measure: Measure,
    delta: f64,
) -> Vec<Standing> {
    let gain = |index: usize| Some(gain(to_baseline[index].as_ref()?.log_ratio, measure));
    let standing = |index: usize| {
        let Some(effect) = &to_baseline[index] else {
            return Standing::Stays;
        };
        if most(effect, measure).is_some_and(|most| most <= delta.ln_1p()) {
            return Standing::NoGain;
        }
        let others =
            (0..to_baseline.len()).filter(|other| *other != index && may_beat(index, *other));
        let others = others.filter_map(|other| Some((other, gain(other)?)));
        let Some((leader, _)) = others.max_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            return Standing::Stays;
        };
        let ratio = against(index, leader);
        match ratio {
            Some(ratio) if is_behind(&ratio, measure) => Standing::Behind(leader),
            _ => Standing::Stays,
        }
    };
    (0..to_baseline.len()).map(standing).collect()
}

/// Whether it is clearly worse than what it is compared with.
pub fn is_behind(ratio: &Effect, measure: Measure) -> bool {
    most(ratio, measure).is_some_and(|most| most < 0.0)
}

/// A log-ratio as a gain: the more the better.
fn gain(log_ratio: f64, measure: Measure) -> f64 {
    match measure {
        Measure::Duration | Measure::Amount => -log_ratio,
        Measure::Rate => log_ratio,
    }
}

/// The most that it may gain, by its interval.
fn most(effect: &Effect, measure: Measure) -> Option<f64> {
    let Interval { low, high, .. } = effect.interval?;
    Some(gain(low, measure).max(gain(high, measure)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Method;

    /// `at` ± 0.02.
    fn effect(at: f64) -> Option<Effect> {
        Some(Effect {
            log_ratio: at,
            interval: Some(Interval {
                low: at - 0.02,
                high: at + 0.02,
                level: 0.95,
                method: Method::Student,
            }),
            pairs: 3,
            levels: stage_levels(2),
        })
    }

    fn standings(
        at: &[f64],
        measure: Measure,
        may_beat: impl Fn(usize, usize) -> bool,
    ) -> Vec<Standing> {
        let effects: Vec<_> = at.iter().map(|at| effect(*at)).collect();
        let against = |one: usize, other: usize| effect(at[one] - at[other]);
        screen(&effects, against, may_beat, measure, 0.01)
    }

    #[test]
    fn only_what_is_clearly_behind_is_dropped() {
        use Standing::{Behind, NoGain, Stays};
        let all = |_, _| true;
        let found = standings(&[-0.5, -0.49, -0.3, 0.0, 0.2], Measure::Duration, all);
        assert_eq!(found, [Stays, Stays, Behind(0), Behind(0), NoGain]);
        // Of a rate more is better.
        let found = standings(&[0.5, -0.5], Measure::Rate, all);
        assert_eq!(found, [Stays, NoGain]);
        // At the edge of what matters.
        assert_eq!(standings(&[0.02 - 0.0099], Measure::Amount, all), [NoGain]);
        assert_eq!(standings(&[0.02 - 0.0101], Measure::Amount, all), [Stays]);
    }

    #[test]
    fn what_risks_more_takes_no_place() {
        use Standing::{Behind, Stays};
        // The second risks more than the first.
        let found = standings(&[-0.1, -0.5], Measure::Duration, |one, _| one == 1);
        assert_eq!(found, [Stays, Stays]);
        let found = standings(&[-0.5, -0.1], Measure::Duration, |one, _| one == 1);
        assert_eq!(found, [Stays, Behind(0)]);
    }

    #[test]
    fn what_has_no_number_stays() {
        let effects = [effect(-0.5), None];
        let found = screen(&effects, |_, _| None, |_, _| true, Measure::Duration, 0.01);
        assert_eq!(found, [Standing::Stays, Standing::Stays]);
    }
}
