//! When to look, and how sure each look has to be.
//!
//! Looking after every round pair and stopping at the first verdict errs in a quarter of all comparisons. So
//! the looks are planned before the first run, each at a level that makes all of them together err in 5 %,
//! shared out among the candidates (Bonferroni). Whatever look it is, the interval printed is the one that
//! the verdict rests on, and all intervals of a comparison hold at once in 95 %.
//!
//! The looks are spaced by equal *ratios* from the first possible one to the last affordable one: 8, 14, 24,
//! 42, 74. A large effect is told in the first seconds, and no comparison runs on for longer than that ratio
//! beyond what it needed. On the simulated shared machine of `examples/calibration.rs` (0.4 s command, at most
//! 3 min) these looks take 22, 26, 36 and 64 s on average for a gain of 50, 5, 2 and 1 %; equal steps at
//! Pocock's textbook level (15, 30, 45, 60, 74) take 38, 39, 45 and 65 s, and both miss 1.5 % of the last.

use std::fmt;

use crate::boundary::level_per_look;
use crate::signed_rank::pairs_needed;

/// How often a comparison may print a wrong `faster` or `slower`, its looks and candidates taken together.
pub const OVERALL_ALPHA: f64 = 0.05;

/// Looks to plan unless the user says otherwise.
pub const DEFAULT_LOOKS: usize = 5;

/// The most looks that are planned; beyond, each costs more certainty than it saves time.
pub const MAX_LOOKS: usize = 10;

/// The most round pairs that are planned: the exact distribution of more takes longer than it is worth.
pub const MAX_PAIRS: usize = 1000;

/// Two looks closer than this see the same data twice and pay twice.
const MIN_STEP: usize = 2;

/// After how many round pairs to look, and at which level.
#[derive(Debug, Clone, PartialEq)]
pub struct LookPlan {
    /// Round pairs, the warm-up not counted, ascending; the last one ends the comparison.
    pub looks: Vec<usize>,
    /// Two-sided error of each interval at each look: what [`crate::estimate`] is to be given.
    pub alpha: f64,
}

/// The round pairs asked for cannot carry a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFewPairs {
    /// What was asked for.
    pub pairs: usize,
    /// The fewest that can.
    pub needed: usize,
}

impl fmt::Display for TooFewPairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pairs, needed } = self;
        write!(f, "{pairs} round pairs cannot earn a verdict: {needed} can")
    }
}

impl std::error::Error for TooFewPairs {}

/// Plans at most `max_looks` looks for up to `pairs` round pairs (the warm-up not counted) and `candidates`
/// variants that are to have a verdict (baseline and hidden baseline not counted). Fewer looks are planned
/// when the round pairs do not suffice. Where a run takes more than about 20 s, ask for one look at
/// [`LookPlan::shortest`] instead.
pub fn plan_looks(
    pairs: usize,
    candidates: usize,
    max_looks: usize,
) -> Result<LookPlan, TooFewPairs> {
    let share = share(candidates);
    let fewest = pairs_needed(share);
    if pairs < fewest {
        let needed = fewest;
        return Err(TooFewPairs { pairs, needed });
    }
    for count in (2..=max_looks.min(MAX_LOOKS)).rev() {
        // A later first look leaves more to each, so the first that carries its own level is near.
        for first in fewest..pairs {
            let Some(looks) = spaced(first, pairs, count) else {
                break;
            };
            let alpha = level_per_look(&looks, share);
            if pairs_needed(alpha) <= first {
                return Ok(LookPlan { looks, alpha });
            }
        }
    }
    Ok(LookPlan {
        looks: vec![pairs],
        alpha: share,
    })
}

impl LookPlan {
    /// One look, after the fewest round pairs that can carry a verdict: 6 for one candidate. For runs so long
    /// that nobody would wait for a second look.
    pub fn shortest(candidates: usize) -> Self {
        let alpha = share(candidates);
        Self {
            looks: vec![pairs_needed(alpha)],
            alpha,
        }
    }

    /// Which look is due after `pairs` round pairs, counted from 1. An interrupted comparison may take its
    /// next look early, at the same level, if that is its last.
    pub fn look_after(&self, pairs: usize) -> Option<usize> {
        Some(self.looks.iter().position(|&look| look == pairs)? + 1)
    }
}

fn share(candidates: usize) -> f64 {
    OVERALL_ALPHA / candidates.max(1) as f64
}

/// `count` looks from `first` to `last` by equal ratios, or `None` where two would be too close.
fn spaced(first: usize, last: usize, count: usize) -> Option<Vec<usize>> {
    let ratio = last as f64 / first as f64;
    let looks: Vec<usize> = (0..count)
        .map(|i| {
            let part = i as f64 / (count - 1) as f64;
            (first as f64 * ratio.powf(part)).round() as usize
        })
        .collect();
    let apart = looks.windows(2).all(|w| w[1] >= w[0] + MIN_STEP);
    apart.then_some(looks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::signed_rank::bound;

    #[test]
    fn three_minutes_of_a_short_command() {
        let plan = plan_looks(74, 1, 5).unwrap();
        assert_eq!(plan.looks, [8, 14, 24, 42, 74]);
        assert!((0.0135..0.0145).contains(&plan.alpha), "{plan:?}");
        assert_eq!(plan.look_after(24), Some(3));
        assert_eq!(plan.look_after(25), None);
    }

    #[test]
    fn every_plan_can_speak_at_its_first_look_and_ends_where_it_was_told() {
        for candidates in [0, 1, 2, 5, 9] {
            for pairs in [10, 11, 13, 17, 30, 100, 200] {
                for looks in [0, 1, 2, 5, 99] {
                    let Ok(plan) = plan_looks(pairs, candidates, looks) else {
                        assert!(pairs < pairs_needed(0.05 / candidates as f64));
                        continue;
                    };
                    assert_eq!(plan.looks.last(), Some(&pairs));
                    assert!(plan.looks.len() <= looks.clamp(1, MAX_LOOKS));
                    assert!(bound(plan.looks[0], plan.alpha).is_some(), "{plan:?}");
                }
            }
        }
    }

    #[test]
    fn too_few_pairs_say_how_many_can() {
        let error = plan_looks(5, 1, 5).unwrap_err();
        assert_eq!((error.pairs, error.needed), (5, 6));
        assert_eq!(
            error.to_string(),
            "5 round pairs cannot earn a verdict: 6 can"
        );
        assert_eq!(plan_looks(6, 1, 5).unwrap(), LookPlan::shortest(1));
        assert_eq!(LookPlan::shortest(2).looks, [7]);
    }

    /// Under no effect the signs and ranks have one distribution for all symmetric noise, so this is the
    /// error of the whole rule: looks, exact ranks and all.
    #[test]
    fn all_looks_together_err_as_seldom_as_promised() {
        let mut rng = Rng::new(11);
        let trials = 4000;
        for pairs in [12, 30, 74] {
            let plan = plan_looks(pairs, 1, 5).unwrap();
            let ranks: Vec<usize> = (plan.looks.iter())
                .map(|&look| bound(look, plan.alpha).unwrap().rank)
                .collect();
            let wrong = (0..trials).filter(|_| {
                let noise: Vec<f64> = (0..pairs).map(|_| rng.unit() - 0.5).collect();
                plan.looks
                    .iter()
                    .zip(&ranks)
                    .any(|(&look, &rank)| beyond(&noise[..look], rank))
            });
            let error = wrong.count() as f64 / f64::from(trials);
            assert!((0.02..0.058).contains(&error), "{plan:?}: {error}");
        }
    }

    /// Whether the interval at `rank` excludes 0: fewer than `rank` Walsh averages on one of its sides,
    /// counted as rank sums.
    fn beyond(noise: &[f64], rank: usize) -> bool {
        let mut sorted = noise.to_vec();
        sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        let positive: usize = (1..)
            .zip(&sorted)
            .filter(|(_, d)| **d > 0.0)
            .map(|(i, _)| i)
            .sum();
        let all = noise.len() * (noise.len() + 1) / 2;
        positive < rank || all - positive < rank
    }
}
