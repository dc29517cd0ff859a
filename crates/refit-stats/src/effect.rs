//! A candidate's ratio to the baseline, with its interval.
//!
//! A ratio and not two means; per round pair and not per run. The estimate is the Hodges–Lehmann median of
//! the Walsh averages of the mean log-ratios, its interval exact (see [`crate::pairs_needed`]): neither asks
//! for a normal distribution, and a wild run moves them little. Outliers are never dropped.
//!
//! Fewer round pairs than the ranks need have Student's interval, from three on. It does ask for about normal
//! noise, and so it is kept wide: at a small error of its own, with a spread that is never taken to be less
//! than the rounds within a pair show, nor less than [`LEAST_SPREAD`].

use std::fmt;

use crate::signed_rank::{bound, median, walsh_averages};
use crate::student::{two_sided_quantile, two_sided_tail};

/// The fewest round pairs that have an interval.
pub const FEWEST_PAIRS: usize = 3;

/// The least standard deviation of a round pair's log-ratio that Student's interval counts with. Three equal
/// numbers do not prove that a machine has no noise: a coarse clock, or one memory layout, gives them too.
pub const LEAST_SPREAD: f64 = 0.02;

/// What one round pair says of one candidate against the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSample {
    /// ln(candidate / baseline) in the round and in its mirror.
    log_ratios: [f64; 2],
    baseline_first: bool,
}

/// A metric value of which no ratio can be taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NotPositive {
    /// The offending value: zero, negative, infinite or not a number.
    pub value: f64,
}

impl fmt::Display for NotPositive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no ratio: a metric must be positive", self.value)
    }
}

impl std::error::Error for NotPositive {}

impl PairSample {
    /// One metric of both variants in a round and its mirror, in any one unit. `baseline_first`: the baseline
    /// ran before the candidate in the first of the two ([`crate::RoundPair::runs_before`]). A run that
    /// failed costs its whole round pair: give only complete ones.
    pub fn new(
        baseline: [f64; 2],
        candidate: [f64; 2],
        baseline_first: bool,
    ) -> Result<Self, NotPositive> {
        let mut log_ratios = [0.0; 2];
        for (round, log_ratio) in log_ratios.iter_mut().enumerate() {
            *log_ratio = logarithm(candidate[round])? - logarithm(baseline[round])?;
        }
        Ok(Self {
            log_ratios,
            baseline_first,
        })
    }

    /// ln(candidate / baseline) of each round.
    pub(crate) fn log_ratios(&self) -> [f64; 2] {
        self.log_ratios
    }

    /// The mean log-ratio of both rounds: what position and linear drift do cancels.
    pub(crate) fn log_ratio(&self) -> f64 {
        0.5 * (self.log_ratios[0] + self.log_ratios[1])
    }

    /// Half of what the log-ratio is larger by when the baseline runs before the candidate: the ratio
    /// cancels, what the position does remains.
    pub(crate) fn slot_difference(&self) -> f64 {
        let half = 0.5 * (self.log_ratios[0] - self.log_ratios[1]);
        if self.baseline_first { half } else { -half }
    }
}

fn logarithm(value: f64) -> Result<f64, NotPositive> {
    if value.is_finite() && value > 0.0 {
        Ok(value.ln())
    } else {
        Err(NotPositive { value })
    }
}

/// A ratio to the baseline as estimated from round pairs. Logarithms, because ratios multiply; what a person
/// reads is [`Effect::change`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// ln of the ratio: 0 is no effect, below 0 the candidate's metric is smaller.
    pub log_ratio: f64,
    /// `None` when there were too few round pairs: unbounded on both sides.
    pub interval: Option<Interval>,
    /// Round pairs that it rests on.
    pub pairs: usize,
    /// The two-sided errors that were asked for.
    pub levels: Levels,
}

/// The two-sided error of an interval, which depends on how it is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// From signed ranks, wherever the round pairs carry it.
    pub ranks: f64,
    /// From Student's t, with fewer. 0: without an interval.
    pub early: f64,
}

/// How an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Exact for any symmetric noise.
    SignedRanks,
    /// Of the ratios to two equal baselines in each round, about exact likewise.
    SignedRanksOfBoth,
    /// For noise that is about normal.
    Student,
}

/// Where the true log-ratio lies, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end, ln of a ratio.
    pub low: f64,
    /// Upper end, ln of a ratio.
    pub high: f64,
    /// Probability to cover that was achieved, as exact ranks allow: at least what was asked for.
    pub level: f64,
    /// What it rests on.
    pub method: Method,
}

impl Effect {
    /// The relative change that was estimated: −0.02 is 2 % less than the baseline.
    pub fn change(&self) -> f64 {
        self.log_ratio.exp_m1()
    }
}

impl Interval {
    /// Both ends as relative changes: (−0.03, −0.01) is 3 % to 1 % less than the baseline.
    pub fn changes(&self) -> (f64, f64) {
        (self.low.exp_m1(), self.high.exp_m1())
    }

    /// Whether "no effect" lies outside.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Half of its width, in logarithms.
    pub fn half_width(&self) -> f64 {
        0.5 * (self.high - self.low)
    }
}

/// The effect of one candidate at these two-sided errors, for instance [`crate::LookPlan::levels`]. `None`
/// without samples. The warm-up round pair is the caller's to leave out.
pub fn estimate(samples: &[PairSample], levels: Levels) -> Option<Effect> {
    let log_ratios: Vec<f64> = samples.iter().map(PairSample::log_ratio).collect();
    let mut effect = effect_of(&log_ratios, levels.ranks)?;
    effect.levels = levels;
    if effect.interval.is_none() {
        effect.interval = student(samples, levels.early);
    }
    Some(effect)
}

/// Hodges–Lehmann and its exact interval.
pub(crate) fn effect_of(values: &[f64], alpha: f64) -> Option<Effect> {
    let averages = walsh_averages(values);
    let interval = bound(values.len(), alpha).map(|bound| Interval {
        low: averages[bound.rank - 1],
        high: averages[averages.len() - bound.rank],
        level: bound.level,
        method: Method::SignedRanks,
    });
    Some(Effect {
        log_ratio: median(&averages)?,
        interval,
        pairs: values.len(),
        levels: Levels {
            ranks: alpha,
            early: 0.0,
        },
    })
}

/// Student's interval about the mean.
fn student(samples: &[PairSample], alpha: f64) -> Option<Interval> {
    let (mean, error) = mean_and_error(samples)?;
    let half_width = two_sided_quantile(alpha, samples.len() - 1) * error;
    half_width.is_finite().then_some(Interval {
        low: mean - half_width,
        high: mean + half_width,
        level: 1.0 - alpha,
        method: Method::Student,
    })
}

/// Mean of the log-ratios, and its standard error. Three numbers can lie close together by chance, so the
/// spread is at least that of the difference between the two rounds of a pair. That one has the same noise,
/// and what position and drift add besides can only make it larger.
pub(crate) fn mean_and_error(samples: &[PairSample]) -> Option<(f64, f64)> {
    if samples.len() < FEWEST_PAIRS {
        return None;
    }
    let n = samples.len() as f64;
    let mean = samples.iter().map(PairSample::log_ratio).sum::<f64>() / n;
    let deviations = samples.iter().map(|sample| sample.log_ratio() - mean);
    let between = deviations.map(|d| d * d).sum::<f64>() / (n - 1.0);
    let differences = samples.iter().map(PairSample::slot_difference);
    let within = differences.map(|d| d * d).sum::<f64>() / n;
    let spread = between.max(within).sqrt().max(LEAST_SPREAD);
    Some((mean, spread / n.sqrt()))
}

/// How likely such an effect or a larger one is where there is none, on either side. From signed ranks; where
/// all round pairs agree, ranks cannot say more than that n signs did, and Student's t says how much it
/// means. 1 with fewer than [`FEWEST_PAIRS`].
pub fn p_value(samples: &[PairSample]) -> f64 {
    let Some((mean, error)) = mean_and_error(samples) else {
        return 1.0;
    };
    let log_ratios: Vec<f64> = samples.iter().map(PairSample::log_ratio).collect();
    let ranks = crate::signed_rank::p_value(&log_ratios);
    let signs = 0.5_f64.powi(samples.len() as i32 - 1);
    if ranks > signs {
        return ranks;
    }
    signs.min(two_sided_tail(mean / error, samples.len() - 1))
}

/// Today's noise floor on this machine, as a relative change: the farther end of the interval of `null`, the
/// effect of a hidden second baseline, whose true effect is none. `None` while that has no exact interval: one
/// of few round pairs is wide for their number, and not for the machine.
pub fn noise_floor(null: &Effect) -> Option<f64> {
    let exact = |interval: &Interval| interval.method == Method::SignedRanks;
    let (low, high) = null.interval.filter(exact)?.changes();
    Some(low.abs().max(high.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(ratio: f64, pairs: usize) -> Vec<PairSample> {
        (0..pairs)
            .map(|i| {
                let y = 10.0 + i as f64;
                PairSample::new([y, y], [y * ratio, y * ratio], true).unwrap()
            })
            .collect()
    }

    fn only_ranks(ranks: f64) -> Levels {
        Levels { ranks, early: 0.0 }
    }

    /// Pairs of one log-ratio in the first round and another in the mirror.
    fn pairs(log_ratios: &[[f64; 2]]) -> Vec<PairSample> {
        let pair = |of: &[f64; 2]| PairSample::new([1.0; 2], of.map(f64::exp), true).unwrap();
        log_ratios.iter().map(pair).collect()
    }

    #[test]
    fn what_has_no_ratio_is_named() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = PairSample::new([1.0, 1.0], [1.0, bad], true).unwrap_err();
            assert!(error.value.to_bits() == bad.to_bits());
            assert!(PairSample::new([bad, 1.0], [1.0, 1.0], true).is_err());
        }
        let error = NotPositive { value: 0.0 };
        assert_eq!(
            error.to_string(),
            "0 has no ratio: a metric must be positive"
        );
    }

    #[test]
    fn drift_and_slot_cancel_within_a_round_pair() {
        // A drift of 3 % per run over the order 0 1, 1 0, and a ratio of 0.9.
        let run = |slot: f64, ratio: f64| ratio * (0.03 * slot).exp();
        let sample = PairSample::new(
            [run(0.0, 1.0), run(3.0, 1.0)],
            [run(1.0, 0.9), run(2.0, 0.9)],
            true,
        )
        .unwrap();
        assert!((sample.log_ratio() - 0.9_f64.ln()).abs() < 1e-12);
        assert!((sample.slot_difference() - 0.03).abs() < 1e-12);
    }

    #[test]
    fn identical_runs_give_a_point_and_not_a_division_by_zero() {
        let effect = estimate(&constant(1.0, 7), only_ranks(0.0158)).unwrap();
        let interval = effect.interval.unwrap();
        assert_eq!(
            (effect.log_ratio, interval.low, interval.high),
            (0.0, 0.0, 0.0)
        );
        assert!(!interval.excludes_zero());
        assert_eq!(noise_floor(&effect), Some(0.0));
    }

    #[test]
    fn without_enough_pairs_there_is_a_point_and_no_interval() {
        assert_eq!(estimate(&[], only_ranks(0.05)), None);
        let effect = estimate(&constant(0.5, 5), only_ranks(0.05)).unwrap();
        assert!((effect.change() + 0.5).abs() < 1e-12);
        assert_eq!(effect.interval, None);
        assert_eq!(noise_floor(&effect), None);
        let six = estimate(&constant(0.5, 6), only_ranks(0.05)).unwrap();
        assert_eq!(six.interval.unwrap().level, 1.0 - 2.0 / 64.0);
    }

    #[test]
    fn a_worked_example() {
        // Walsh averages of 1…6: the ends at rank 1, the median 3.5.
        let effect = effect_of(&[6.0, 1.0, 4.0, 2.0, 5.0, 3.0], 0.05).unwrap();
        let interval = effect.interval.unwrap();
        assert_eq!(
            (effect.log_ratio, interval.low, interval.high),
            (3.5, 1.0, 6.0)
        );
        assert_eq!(interval.half_width(), 2.5);
    }

    #[test]
    fn one_wild_round_pair_in_twelve_hardly_moves_it() {
        let mut values: Vec<f64> = (0..12).map(|i| f64::from(i) * 0.001).collect();
        let calm = effect_of(&values, 0.05).unwrap();
        values[11] = 5.0;
        let wild = effect_of(&values, 0.05).unwrap();
        assert!((wild.log_ratio - calm.log_ratio).abs() < 0.001);
        assert!(wild.interval.unwrap().high < 1.0);
    }

    #[test]
    fn three_round_pairs_have_an_interval_of_their_own() {
        let levels = Levels {
            ranks: 0.01,
            early: 0.05,
        };
        let samples = pairs(&[[0.6, 0.6], [0.7, 0.7], [0.8, 0.8]]);
        let effect = estimate(&samples, levels).unwrap();
        let interval = effect.interval.unwrap();
        // t = 4.303, standard deviation 0.1.
        let half_width = 4.3027 * 0.1 / 3.0_f64.sqrt();
        assert!((interval.low - (0.7 - half_width)).abs() < 1e-4);
        assert!((interval.high - (0.7 + half_width)).abs() < 1e-4);
        assert_eq!((interval.method, interval.level), (Method::Student, 0.95));
        assert_eq!(noise_floor(&effect), None);
        assert_eq!(estimate(&samples[1..], levels).unwrap().interval, None);
        let eight = estimate(&constant(0.5, 8), levels).unwrap();
        assert_eq!(eight.interval.unwrap().method, Method::SignedRanks);
    }

    #[test]
    fn pairs_that_agree_by_chance_do_not_make_it_narrow() {
        let levels = Levels {
            ranks: 0.01,
            early: 0.05,
        };
        let half_width = |log_ratios| {
            let effect = estimate(&pairs(log_ratios), levels).unwrap();
            effect.interval.unwrap().half_width()
        };
        let equal = half_width(&[[0.7, 0.7]; 3]);
        assert!((equal - 4.3027 * LEAST_SPREAD / 3.0_f64.sqrt()).abs() < 1e-4);
        // The mean of both rounds is the same in each pair; the rounds are not.
        let apart = half_width(&[[0.9, 0.5]; 3]);
        assert!((apart - 4.3027 * 0.2 / 3.0_f64.sqrt()).abs() < 1e-4);
    }

    #[test]
    fn p_values_are_of_the_ranks_until_every_pair_agrees() {
        let equal = |x: f64| [x, x];
        // T of −1 2 3 4 5 6 is 1, of which P(T ≤ 1) = 2/64.
        let but_one = pairs(&[-0.1, 0.2, 0.3, 0.4, 0.5, 0.6].map(equal));
        assert_eq!(p_value(&but_one), 4.0 / 64.0);
        let scattered = pairs(&[0.001, 0.2, 0.3, 0.4, 0.5, 0.6].map(equal));
        let sure = pairs(&[0.5, 0.51, 0.49, 0.5, 0.5, 0.5].map(equal));
        assert!(p_value(&scattered) <= 2.0 / 64.0);
        assert!(p_value(&sure) < 1e-6);
        let none = pairs(&[0.0; 9].map(equal));
        assert_eq!(p_value(&none), 1.0);
        assert_eq!(p_value(&sure[..2]), 1.0);
    }
}
