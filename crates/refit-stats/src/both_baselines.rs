//! A candidate against both baselines: the hidden second one is as good as the first, and half of the noise of
//! a ratio to the baseline is the baseline's own.
//!
//! A round pair has four ratios, one to each baseline in each of its rounds. Their mean over the rounds, which
//! [`estimate`] takes, is disturbed when one of its four runs is; so each ratio is ranked for itself, and a
//! disturbed run costs no more than its own. The four are not independent: they share runs, a memory layout and
//! what came first. So the signed ranks of a round pair are added up, and the sums of different round pairs are
//! what is independent of each other (Rosner, Glynn and Lee, "The Wilcoxon signed rank test for paired comparisons
//! of clustered data", Biometrics 62, 2006; Datta and Satten, "A signed-rank test for clustered data", Biometrics
//! 64, 2008). Where the candidate differs from its baselines by a ratio alone, each sum about that ratio has
//! either sign with the same probability, since the order of the runs is drawn anew for each round pair: whatever
//! the noise is, the variance of their total is the sum of their squares. The interval is all ratios about which
//! the total is within its critical value: [`Ratios::excess`].
//!
//! What is estimated is the pseudomedian of the ratios of single runs, where `estimate` has that of the means
//! over a round pair. They differ only where a candidate's noise has another shape than its baseline's.

use crate::effect::{Effect, Interval, Levels, Method, PairSample, estimate};
use crate::signed_rank::pairs_needed;
use crate::student::{MANY, two_sided_quantile};

/// Ratios of one round pair: two rounds, two baselines.
const RATIOS: usize = 4;
/// Bisections: of a range of a factor of 100 they leave 10⁻⁹.
const HALVINGS: usize = 32;

/// The effect of one candidate, from its ratios to the first and to the second baseline in the same round
/// pairs. As [`estimate`] of the first alone where there are too few round pairs for signed ranks, or where
/// the second has not all of them.
pub fn estimate_from_both(
    first: &[PairSample],
    second: &[PairSample],
    levels: Levels,
) -> Option<Effect> {
    let alone = estimate(first, levels)?;
    let pairs = first.len();
    if pairs < pairs_needed(levels.ranks) || second.len() != pairs {
        return Some(alone);
    }
    let ratios = Ratios::new(first, second, levels.ranks);
    let (below, above) = ratios.crossing(0.0);
    Some(Effect {
        log_ratio: 0.5 * (below + above),
        interval: Some(Interval {
            low: ratios.crossing(1.0).0,
            high: ratios.crossing(-1.0).1,
            level: 1.0 - levels.ranks,
            method: Method::SignedRanksOfBoth,
        }),
        ..alone
    })
}

/// The log-ratios, those of a round pair one after the other.
struct Ratios {
    logs: Vec<f64>,
    /// Of a normal variable at the error that is asked for.
    critical: f64,
}

impl Ratios {
    fn new(first: &[PairSample], second: &[PairSample], alpha: f64) -> Self {
        let both = first.iter().zip(second);
        let of_pair = |(a, b): (&PairSample, &PairSample)| [a.log_ratios(), b.log_ratios()];
        Self {
            logs: both.flat_map(of_pair).flatten().collect(),
            critical: two_sided_quantile(alpha, MANY),
        }
    }

    /// Between which two effects the excess falls below `target`. Beyond the least and the largest ratio all
    /// round pairs have one sign, which as many as are needed exclude.
    fn crossing(&self, target: f64) -> (f64, f64) {
        let least = self.logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut low, mut high) = (least, most);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.excess(middle) > target {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low, high)
    }

    /// The total of the signed ranks about `effect`, over its critical value: above 1 the effect is larger,
    /// below −1 it is smaller.
    fn excess(&self, effect: f64) -> f64 {
        let sums = self.sums_of_signed_ranks(effect);
        let power = |exponent| sums.iter().map(|sum| sum.powi(exponent)).sum::<f64>();
        let variance = power(2);
        if variance == 0.0 {
            return 0.0;
        }
        // A total of few signs has shorter tails than a normal one (Cornish and Fisher, of the kurtosis).
        let kurtosis = -2.0 * power(4) / (variance * variance);
        let z = self.critical;
        let critical = z + (z.powi(3) - 3.0 * z) * kurtosis / 24.0;
        power(1) / (variance.sqrt() * critical)
    }

    /// For each round pair; equal distances have their mean rank.
    fn sums_of_signed_ranks(&self, effect: f64) -> Vec<f64> {
        let mut off: Vec<(f64, usize)> =
            (self.logs.iter().map(|log| log - effect).zip(0..)).collect();
        off.sort_unstable_by(|(a, _), (b, _)| a.abs().total_cmp(&b.abs()));
        let mut sums = vec![0.0; self.logs.len() / RATIOS];
        let mut before = 0;
        for equal in off.chunk_by(|(a, _), (b, _)| a.abs() == b.abs()) {
            let rank = before as f64 + 0.5 * (equal.len() + 1) as f64;
            before += equal.len();
            for &(off, at) in equal.iter().filter(|(off, _)| *off != 0.0) {
                sums[at / RATIOS] += rank * off.signum();
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const LEVELS: Levels = Levels {
        ranks: 0.0125,
        early: 0.0017,
    };

    /// Ratios of a candidate to two baselines, with independent noise of up to ±2 % in each run, and one run in
    /// `disturbed` that takes half as long again.
    fn ratios(pairs: usize, disturbed: u64, seed: u64) -> [Vec<PairSample>; 2] {
        let mut rng = Rng::new(seed);
        let mut run = |ratio: f64| {
            [0, 1].map(|_| {
                let stall = if rng.below(disturbed) == 0 { 1.5 } else { 1.0 };
                stall * ratio * (1.0 + 0.04 * (rng.unit() - 0.5))
            })
        };
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..pairs {
            let (first, second, candidate) = (run(1.0), run(1.0), run(0.97));
            for (samples, baseline) in both.iter_mut().zip([first, second]) {
                samples.push(PairSample::new(baseline, candidate, true).unwrap());
            }
        }
        both
    }

    /// The mean width of both intervals together over that of the first alone.
    fn narrower(disturbed: u64) -> f64 {
        let (mut alone, mut together) = (0.0, 0.0);
        for seed in 0..60 {
            let [first, second] = ratios(40, disturbed, seed);
            let half_width =
                |effect: Option<Effect>| effect.unwrap().interval.unwrap().half_width();
            alone += half_width(estimate(&first, LEVELS));
            together += half_width(estimate_from_both(&first, &second, LEVELS));
        }
        together / alone
    }

    #[test]
    fn a_second_baseline_makes_the_interval_narrower_by_an_eighth() {
        let ratio = narrower(u64::MAX);
        assert!((0.82..0.90).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_disturbed_run_costs_no_more_than_its_own_ratios() {
        let ratio = narrower(20);
        assert!((0.30..0.50).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_shift_of_the_candidate_shifts_the_interval() {
        let [first, second] = ratios(20, 20, 5);
        let ends = |effect: Effect| {
            let interval = effect.interval.unwrap();
            [effect.log_ratio, interval.low, interval.high]
        };
        let there = ends(estimate_from_both(&first, &second, LEVELS).unwrap());
        let slower = |samples: &[PairSample]| -> Vec<PairSample> {
            let pair = |sample: &PairSample| {
                let times = sample.log_ratios().map(|log| 3.0 * log.exp());
                PairSample::new([1.0; 2], times, true).unwrap()
            };
            samples.iter().map(pair).collect()
        };
        let moved = estimate_from_both(&slower(&first), &slower(&second), LEVELS);
        for (there, moved) in there.into_iter().zip(ends(moved.unwrap())) {
            assert!(
                (moved - there - 3.0_f64.ln()).abs() < 1e-8,
                "{there} {moved}"
            );
        }
    }

    #[test]
    fn equal_ratios_give_a_point_that_covers() {
        let same = vec![PairSample::new([2.0; 2], [2.0; 2], true).unwrap(); 9];
        let effect = estimate_from_both(&same, &same, LEVELS).unwrap();
        let interval = effect.interval.unwrap();
        assert_eq!(
            (effect.log_ratio, interval.low, interval.high),
            (0.0, 0.0, 0.0)
        );
        assert!(!interval.excludes_zero());
    }

    #[test]
    fn the_order_of_the_baselines_does_not_matter() {
        for seed in 0..20 {
            let [first, second] = ratios(24, 20, seed);
            let there = estimate_from_both(&first, &second, LEVELS);
            assert_eq!(there, estimate_from_both(&second, &first, LEVELS));
            assert_ne!(there, estimate(&first, LEVELS));
        }
    }

    #[test]
    fn too_few_or_unequal_round_pairs_are_estimated_from_the_first() {
        let [first, second] = ratios(7, 20, 1);
        let alone = estimate(&first, LEVELS);
        assert_eq!(estimate_from_both(&first, &second, LEVELS), alone);
        let [first, second] = ratios(12, 20, 1);
        let alone = estimate(&first, LEVELS);
        assert_eq!(estimate_from_both(&first, &second[1..], LEVELS), alone);
        assert_eq!(estimate_from_both(&[], &[], LEVELS), None);
    }
}
