//! The order in which variants run.
//!
//! Each round runs every variant once in a random order, and the next runs that order backwards. Within such
//! a round pair every two variants keep the same mean position, so a drift that is linear over it cancels in
//! the samples themselves, and a cost of coming first or last falls on both alike or, where a third variant
//! takes it, on either with the same chance: it can widen an interval, but not shift it.

use crate::rng::Rng;

/// A round and its mirror image: the unit of analysis. Variants are numbered from 0, the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundPair {
    order: Vec<usize>,
}

impl RoundPair {
    /// The variants of both rounds in the order of their runs: each variant once, then mirrored.
    pub fn rounds(&self) -> [Vec<usize>; 2] {
        [
            self.order.clone(),
            self.order.iter().rev().copied().collect(),
        ]
    }

    /// Whether `a` runs before `b` in the first of the two rounds (in the second it is the other way round).
    pub fn runs_before(&self, a: usize, b: usize) -> bool {
        let position = |variant| self.order.iter().position(|&v| v == variant);
        position(a) < position(b)
    }
}

/// The round pairs of a comparison, without end. The first one is the warm-up: the caller runs and records
/// it, and leaves it out of every estimate.
#[derive(Debug, Clone)]
pub struct Schedule {
    rng: Rng,
    variants: usize,
}

impl Schedule {
    /// The schedule that `seed` stands for, with `variants` variants (the baseline and a hidden second
    /// baseline counted).
    pub fn new(seed: u64, variants: usize) -> Self {
        Self {
            rng: Rng::new(seed),
            variants,
        }
    }
}

impl Iterator for Schedule {
    type Item = RoundPair;

    fn next(&mut self) -> Option<RoundPair> {
        let mut order: Vec<usize> = (0..self.variants).collect();
        self.rng.shuffle(&mut order);
        Some(RoundPair { order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_each_variant_once_and_the_next_is_its_mirror() {
        for variants in 0..8 {
            for pair in Schedule::new(0x5eed, variants).take(20) {
                let [first, mut second] = pair.rounds();
                second.reverse();
                assert_eq!(first, second);
                second.sort_unstable();
                assert_eq!(second, (0..variants).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_seed_alone_decides() {
        let orders = |seed| Schedule::new(seed, 4).take(5).collect::<Vec<_>>();
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
        let [first, _] = orders(0x5eed)[0].rounds();
        assert_eq!(
            first,
            [1, 0, 3, 2],
            "recorded seeds must keep their meaning"
        );
    }

    #[test]
    fn before_in_the_first_round_is_after_in_the_second() {
        for pair in Schedule::new(3, 3).take(10) {
            let [first, second] = pair.rounds();
            let at = |round: &[usize], v| round.iter().position(|&x| x == v).unwrap();
            assert_eq!(pair.runs_before(0, 2), at(&first, 0) < at(&first, 2));
            assert_ne!(pair.runs_before(0, 2), at(&second, 0) < at(&second, 2));
        }
    }

    #[test]
    fn the_mean_position_within_a_round_pair_is_the_same_for_all() {
        for pair in Schedule::new(9, 5).take(50) {
            let runs = pair.rounds().concat();
            for variant in 0..5 {
                let at = |v| runs.iter().enumerate().filter(move |(_, x)| **x == v);
                assert_eq!(at(variant).map(|(slot, _)| slot).sum::<usize>(), 9);
            }
        }
    }
}
