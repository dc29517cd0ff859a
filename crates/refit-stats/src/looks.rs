//! When to look, and how sure each look has to be.
//!
//! Looking after every round pair and stopping at the first verdict errs in a quarter of all comparisons. So
//! the looks are planned before the first run, each at a level that makes all of them together err in 5 %,
//! shared out among the candidates (Bonferroni). Whatever look it is, the interval printed is the one that
//! the verdict rests on, and all intervals of a comparison hold at once in 95 %.
//!
//! Ranks need 8 round pairs before they can say anything at such a level. A large effect need not wait for
//! them: a tenth of the error is spent on looks after 3, 4 and 6, with Student's interval, which such an effect
//! is far outside of.
//!
//! The looks are spaced by equal *ratios* from the first possible one to the last affordable one: 8, 11, 15,
//! 21, 29, 39, 54, 74. A large effect is told in the first seconds, and no comparison runs on for longer than
//! that ratio beyond what it needed. On the simulated shared machine of `examples/calibration.rs` (0.4 s command,
//! at most 3 min) these looks take 10, 21, 26 and 40 s on average for a gain of 50, 5, 2 and 1 %, and 49 s
//! where there is none; five of them 10, 22, 27, 43 and 53 s; equal steps at Pocock's textbook level (15, 30,
//! 45, 60, 74) 38, 38, 39, 49 and 55 s. They miss 0.8, 0.9 and 1.1 % of the gains of 1 %.

use std::fmt;

use crate::boundary::level_per_look;
use crate::effect::{FEWEST_PAIRS, Levels};
use crate::signed_rank::pairs_needed;

/// How often a comparison may print a wrong `faster` or `slower`, its looks and candidates taken together.
pub const OVERALL_ALPHA: f64 = 0.05;

/// Looks to plan unless the user says otherwise.
pub const DEFAULT_LOOKS: usize = 8;

/// The most looks that are planned; beyond, each costs more certainty than it saves time.
pub const MAX_LOOKS: usize = 10;

/// The most round pairs that are planned: the exact distribution of more takes longer than it is worth.
pub const MAX_PAIRS: usize = 1000;

/// The looks before ranks can say anything, and the share of the error that all of them together may use.
const EARLY_LOOKS: [usize; 3] = [FEWEST_PAIRS, 4, 6];
const EARLY_SHARE: f64 = 0.1;

/// Two looks closer than this see the same data twice and pay twice.
const MIN_STEP: usize = 2;

/// After how many round pairs to look, and at which level.
#[derive(Debug, Clone, PartialEq)]
pub struct LookPlan {
    /// Round pairs, the warm-up not counted, ascending; the last one ends the comparison.
    pub looks: Vec<usize>,
    /// Two-sided error of each interval at each look: what [`crate::estimate`] is to be given.
    pub levels: Levels,
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
        let word = if *pairs == 1 { "pair" } else { "pairs" };
        write!(
            f,
            "{pairs} round {word} cannot earn a verdict: {needed} can"
        )
    }
}

impl std::error::Error for TooFewPairs {}

/// Plans at most `max_looks` looks for up to `pairs` round pairs (the warm-up not counted) and `candidates`
/// variants that are to have a verdict (baseline and hidden baseline not counted), the early ones besides.
/// Fewer looks are planned when the round pairs do not suffice. Where a run takes more than about 20 s, ask
/// for one look after [`fewest_for_ranks`] instead.
pub fn plan_looks(
    pairs: usize,
    candidates: usize,
    max_looks: usize,
) -> Result<LookPlan, TooFewPairs> {
    if pairs < FEWEST_PAIRS {
        let needed = FEWEST_PAIRS;
        return Err(TooFewPairs { pairs, needed });
    }
    let share = share(candidates);
    let fewest = fewest_for_ranks(candidates);
    if pairs < fewest {
        return Ok(only_early(pairs, share));
    }
    let later = (1.0 - EARLY_SHARE) * share;
    for count in (2..=max_looks.min(MAX_LOOKS)).rev() {
        // A later first look leaves more to each, so the first that carries its own level is near.
        for first in fewest..pairs {
            let Some(looks) = spaced(first, pairs, count) else {
                break;
            };
            let alpha = level_per_look(&looks, later);
            if pairs_needed(alpha) <= first {
                return Ok(with_early(looks, alpha, share));
            }
        }
    }
    Ok(with_early(vec![pairs], later, share))
}

/// The fewest round pairs whose ranks can carry a verdict: 6 for one candidate.
pub fn fewest_for_ranks(candidates: usize) -> usize {
    pairs_needed((1.0 - EARLY_SHARE) * share(candidates))
}

/// The early looks, before `looks` at `alpha` each.
fn with_early(looks: Vec<usize>, alpha: f64, share: f64) -> LookPlan {
    let before = pairs_needed(alpha).min(looks[0] - 1);
    let mut all: Vec<usize> = (EARLY_LOOKS.into_iter())
        .filter(|&look| look < before)
        .collect();
    let early = EARLY_SHARE * share / all.len().max(1) as f64;
    all.extend(looks);
    LookPlan {
        looks: all,
        levels: Levels {
            ranks: alpha,
            early,
        },
    }
}

/// Where ranks will never say anything the early looks have all of the error.
fn only_early(pairs: usize, share: f64) -> LookPlan {
    let earlier = EARLY_LOOKS
        .into_iter()
        .filter(|look| look + MIN_STEP <= pairs);
    let looks: Vec<usize> = earlier.chain([pairs]).collect();
    let early = share / looks.len() as f64;
    LookPlan {
        looks,
        levels: Levels {
            ranks: (1.0 - EARLY_SHARE) * share,
            early,
        },
    }
}

impl LookPlan {
    /// One look after `pairs` round pairs, with all of the error.
    pub fn once(pairs: usize, candidates: usize) -> Self {
        let alpha = share(candidates);
        Self {
            looks: vec![pairs],
            levels: Levels {
                ranks: alpha,
                early: alpha,
            },
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
        assert_eq!(plan.looks, [3, 4, 6, 8, 14, 24, 42, 74]);
        let Levels { ranks, early } = plan.levels;
        assert!((0.0120..0.0130).contains(&ranks), "{plan:?}");
        assert!((early * 3.0 - 0.005).abs() < 1e-12, "{plan:?}");
        assert_eq!(plan.look_after(24), Some(6));
        assert_eq!(plan.look_after(25), None);
    }

    #[test]
    fn every_plan_ends_where_it_was_told_and_no_look_mixes_the_methods() {
        for candidates in [0, 1, 2, 5, 9] {
            for pairs in 3..60 {
                for looks in [0, 1, 2, 5, 99] {
                    let plan = plan_looks(pairs, candidates, looks).unwrap();
                    assert_eq!(plan.looks.last(), Some(&pairs));
                    assert!(plan.looks.is_sorted_by(|a, b| a < b), "{plan:?}");
                    let Levels { ranks, early } = plan.levels;
                    let by_ranks = |look: &&usize| bound(**look, ranks).is_some();
                    let later = plan.looks.iter().filter(by_ranks).count();
                    let before = plan.looks.len() - later;
                    assert!(later <= looks.clamp(1, MAX_LOOKS), "{plan:?}");
                    // What is spent early is what is missing later.
                    let spent = match later {
                        0 => 1.0,
                        _ if before == 0 => 0.0,
                        _ => EARLY_SHARE,
                    };
                    let share = OVERALL_ALPHA / candidates.max(1) as f64;
                    let error = before as f64 * early;
                    assert!((error - spent * share).abs() < 1e-12, "{plan:?}");
                    assert!(later == 0 || pairs >= fewest_for_ranks(candidates));
                }
            }
        }
    }

    #[test]
    fn too_few_pairs_say_how_many_can() {
        let error = plan_looks(2, 1, 5).unwrap_err();
        assert_eq!((error.pairs, error.needed), (2, 3));
        assert_eq!(
            error.to_string(),
            "2 round pairs cannot earn a verdict: 3 can"
        );
        let looks = |pairs| plan_looks(pairs, 1, 5).unwrap().looks;
        assert_eq!(looks(3), [3]);
        assert_eq!(looks(4), [4]);
        assert_eq!(looks(5), [3, 5]);
        assert_eq!(looks(6), [3, 4, 6]);
        assert_eq!((fewest_for_ranks(1), fewest_for_ranks(2)), (6, 7));
    }

    /// Under no effect the signs and ranks have one distribution for all symmetric noise, so this is the
    /// error of the whole rule: looks, exact ranks and all.
    #[test]
    fn all_looks_together_err_as_seldom_as_promised() {
        let mut rng = Rng::new(11);
        let trials = 4000;
        for pairs in [12, 30, 74] {
            let plan = plan_looks(pairs, 1, 5).unwrap();
            // The early looks' own error is held by the simulated comparisons of tests/calibration.rs.
            let ranks: Vec<(usize, usize)> = (plan.looks.iter())
                .filter_map(|&look| Some((look, bound(look, plan.levels.ranks)?.rank)))
                .collect();
            let wrong = (0..trials).filter(|_| {
                let noise: Vec<f64> = (0..pairs).map(|_| rng.unit() - 0.5).collect();
                ranks
                    .iter()
                    .any(|&(look, rank)| beyond(&noise[..look], rank))
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
