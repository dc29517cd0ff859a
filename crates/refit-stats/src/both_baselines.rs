//! A candidate against both baselines: the hidden second one is as good as the first, and half of the noise of
//! a ratio to the baseline is the baseline's own.
//!
//! The Walsh averages of both ratios are taken together. Each ratio's count of averages below the true effect
//! has Wilcoxon's signed-rank distribution, and both counts are correlated, as they have the candidate in
//! common. Where the three runs are disturbed alike, by noise of any distribution, the correlation is between
//! 0.44 and 0.5 with many round pairs (Lehmann, "Asymptotically nonparametric inference in some linear models
//! with one observation per cell", Ann. Math. Statist. 35, 1964; Spurrier, "Improved bounds for moments of some
//! rank statistics", Commun. Statist. A 20, 1991). It is taken as 0.5, or as estimated where that is more: a
//! candidate may have more noise than its baseline. So the counts' mean is exact, and their spread at most
//! √¾ of that of a single ratio. Averaging the two baselines first would not do: with skewed noise a candidate
//! less the mean of two is not symmetric.

use crate::effect::{Effect, Interval, Levels, Method, PairSample, estimate};
use crate::signed_rank::{bound, median, walsh_averages};

/// The correlation of both counts where all three variants are disturbed alike, at most.
const CORRELATION: f64 = 0.5;

/// The effect of one candidate, from its ratios to the first and to the second baseline in the same round
/// pairs. As [`estimate`] of the first alone where there are too few round pairs for signed ranks, or where
/// the second has not all of them.
pub fn estimate_from_both(
    first: &[PairSample],
    second: &[PairSample],
    levels: Levels,
) -> Option<Effect> {
    let alone = estimate(first, levels)?;
    let n = first.len();
    let (Some(bound), true) = (bound(n, levels.ranks), second.len() == n) else {
        return Some(alone);
    };
    let [first, second] = [first, second].map(log_ratios);
    let mut averages = walsh_averages(&first);
    let each = averages.len();
    averages.extend(walsh_averages(&second));
    averages.sort_unstable_by(f64::total_cmp);
    let log_ratio = median(&averages)?;
    let shrink = (0.5 * (1.0 + correlation(&first, &second, log_ratio))).sqrt();
    // Of a single ratio, so many averages beyond the true effect are too few; of both, so many. As many are
    // expected on one side as one ratio has.
    let too_few = 2 * (bound.rank - 1);
    let too_few = each as f64 - shrink * (each - too_few) as f64;
    let rank = (too_few.floor() as usize + 1).min(each);
    Some(Effect {
        log_ratio,
        interval: Some(Interval {
            low: averages[rank - 1],
            high: averages[averages.len() - rank],
            level: bound.level,
            method: Method::SignedRanksOfBoth,
        }),
        ..alone
    })
}

fn log_ratios(samples: &[PairSample]) -> Vec<f64> {
    samples.iter().map(PairSample::log_ratio).collect()
}

/// Of the signed ranks of both about the effect, but at least [`CORRELATION`].
fn correlation(first: &[f64], second: &[f64], effect: f64) -> f64 {
    let [a, b] = [first, second].map(|values| signed_ranks(values, effect));
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let both = (product(&a, &a) * product(&b, &b)).sqrt();
    // Where all are equal there is nothing to estimate it from.
    if both > 0.0 {
        (product(&a, &b) / both).clamp(CORRELATION, 1.0)
    } else {
        1.0
    }
}

/// The rank of each distance from `middle`, with its sign.
fn signed_ranks(values: &[f64], middle: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| {
        let distance = |i: &usize| (values[*i] - middle).abs();
        distance(a).total_cmp(&distance(b))
    });
    let mut ranks = vec![0.0; values.len()];
    for (rank, at) in (1..).zip(order) {
        let off = values[at] - middle;
        ranks[at] = if off == 0.0 {
            0.0
        } else {
            f64::from(rank) * off.signum()
        };
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const LEVELS: Levels = Levels {
        ranks: 0.0125,
        early: 0.0017,
    };

    /// Ratios of a candidate to two baselines, with independent noise of up to ±2 % in each run.
    fn ratios(pairs: usize, seed: u64) -> [Vec<PairSample>; 2] {
        let mut rng = Rng::new(seed);
        let mut run = |ratio: f64| [0, 1].map(|_| ratio * (1.0 + 0.04 * (rng.unit() - 0.5)));
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..pairs {
            let (first, second, candidate) = (run(1.0), run(1.0), run(0.97));
            for (samples, baseline) in both.iter_mut().zip([first, second]) {
                samples.push(PairSample::new(baseline, candidate, true).unwrap());
            }
        }
        both
    }

    #[test]
    fn a_second_baseline_makes_the_interval_narrower_by_an_eighth() {
        let (mut alone, mut together) = (0.0, 0.0);
        for seed in 0..200 {
            let [first, second] = ratios(40, seed);
            let half_width =
                |effect: Option<Effect>| effect.unwrap().interval.unwrap().half_width();
            alone += half_width(estimate(&first, LEVELS));
            together += half_width(estimate_from_both(&first, &second, LEVELS));
        }
        let ratio: f64 = together / alone;
        assert!((0.85..0.90).contains(&ratio), "{ratio}");
    }

    #[test]
    fn one_that_knows_nothing_new_changes_nothing() {
        for pairs in [8, 9, 20, 41] {
            let [first, _] = ratios(pairs, 7);
            let ends = |effect: Option<Effect>| {
                let effect = effect.unwrap();
                let interval = effect.interval.unwrap();
                [effect.log_ratio, interval.low, interval.high]
            };
            let both = estimate_from_both(&first, &first, LEVELS);
            assert_eq!(ends(both), ends(estimate(&first, LEVELS)));
        }
    }

    #[test]
    fn the_order_of_the_baselines_does_not_matter() {
        let [first, second] = ratios(24, 3);
        let there = estimate_from_both(&first, &second, LEVELS);
        assert_eq!(there, estimate_from_both(&second, &first, LEVELS));
        assert_ne!(there, estimate(&first, LEVELS));
    }

    #[test]
    fn too_few_or_unequal_round_pairs_are_estimated_from_the_first() {
        let [first, second] = ratios(7, 1);
        let alone = estimate(&first, LEVELS);
        assert_eq!(estimate_from_both(&first, &second, LEVELS), alone);
        let [first, second] = ratios(12, 1);
        let alone = estimate(&first, LEVELS);
        assert_eq!(estimate_from_both(&first, &second[1..], LEVELS), alone);
        assert_eq!(estimate_from_both(&[], &[], LEVELS), None);
    }
}
