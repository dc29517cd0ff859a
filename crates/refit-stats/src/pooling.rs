//! One effect from several machines.
//!
//! The machine is the replicate: what a swap gains on the next one depends on how much machines differ, and no number
//! of round pairs on one of them tells that. So the pooled effect is the mean of the machines' effects, each counted
//! once, with Student's interval of what they scatter. That covers what it should whether machines differ or not, from
//! two of them on, and however unequal their own noise is (an interval of unequal spreads is wider than it has to be,
//! and not narrower: Benjamini, "Is the t test really conservative when the parent distribution is long-tailed?", JASA
//! 78, 1983). Weights by each machine's noise, the usual random-effects model, make it narrower only where machines do
//! not differ, and are estimated from few round pairs themselves: simulated on the same machines, the interval of
//! Hartung and Knapp with the variance of Paule and Mandel covered in 90.4 to 95.4 % (three machines of unequal noise
//! the least), this one in 94.3 to 97.3 %. `tests/pooling.rs` holds the latter.

use crate::effect::{PairSample, mean_and_error};
use crate::fisher::upper_tail;
use crate::student::two_sided_quantile;

/// The error of the pooled interval and of that of the next machine.
pub const POOLED_ALPHA: f64 = 0.05;

/// What one machine measured of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// ln(candidate / baseline).
    pub log_ratio: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of that.
    pub freedom: f64,
}

/// What machines have in common, and how much they differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// Mean of the logarithms, each machine counted once.
    pub log_ratio: f64,
    /// Where the mean of all machines of this kind lies, at [`POOLED_ALPHA`].
    pub interval: [f64; 2],
    /// Where another machine of this kind will measure its effect, at [`POOLED_ALPHA`].
    pub next: [f64; 2],
    /// How likely effects that scatter so or more are where all machines have the same.
    pub p_equal: f64,
}

impl Block {
    /// From the round pairs of one comparison; `log_ratio`: its estimate. `None` with fewer than
    /// [`crate::FEWEST_PAIRS`].
    pub fn of_samples(samples: &[PairSample], log_ratio: f64) -> Option<Block> {
        let (_, error) = mean_and_error(samples)?;
        Some(Block {
            log_ratio,
            error,
            freedom: (samples.len() - 1) as f64,
        })
    }

    /// Several comparisons of one machine, or several machines of one kind: the mean, each counted once. Its error is
    /// what they scatter, but not less than their own errors have it. `None` of none.
    pub fn joined(blocks: &[Block]) -> Option<Block> {
        let [first, rest @ ..] = blocks else {
            return None;
        };
        if rest.is_empty() {
            return Some(*first);
        }
        let n = blocks.len() as f64;
        let own = blocks.iter().map(|block| block.error.powi(2)).sum::<f64>() / (n * n);
        let scatter = scatter(blocks).powi(2) / n;
        let freedom = if own > scatter {
            blocks.iter().map(|block| block.freedom).sum()
        } else {
            n - 1.0
        };
        Some(Block {
            log_ratio: mean(blocks),
            error: own.max(scatter).sqrt(),
            freedom,
        })
    }

    /// Student's interval at this two-sided error.
    pub fn interval(&self, alpha: f64) -> [f64; 2] {
        let half_width = two_sided_quantile(alpha, self.freedom as usize) * self.error;
        [self.log_ratio - half_width, self.log_ratio + half_width]
    }
}

/// The effect across machines; `None` with fewer than two.
pub fn pool(blocks: &[Block]) -> Option<Pooled> {
    if blocks.len() < 2 {
        return None;
    }
    let n = blocks.len() as f64;
    let log_ratio = mean(blocks);
    let t = two_sided_quantile(POOLED_ALPHA, blocks.len() - 1) * scatter(blocks);
    let around = |half_width: f64| [log_ratio - half_width, log_ratio + half_width];
    Some(Pooled {
        log_ratio,
        interval: around(t / n.sqrt()),
        next: around(t * (1.0 + 1.0 / n).sqrt()),
        p_equal: p_equal(blocks),
    })
}

fn mean(blocks: &[Block]) -> f64 {
    blocks.iter().map(|block| block.log_ratio).sum::<f64>() / blocks.len() as f64
}

/// Their standard deviation.
fn scatter(blocks: &[Block]) -> f64 {
    let mean = mean(blocks);
    let squares = blocks.iter().map(|block| (block.log_ratio - mean).powi(2));
    (squares.sum::<f64>() / (blocks.len() - 1) as f64).sqrt()
}

/// How likely effects that scatter so or more are where all are the same: Welch's test of means with unequal errors
/// ("On the comparison of several mean values: an alternative approach", Biometrika 38, 1951). 1 with fewer than two.
pub fn p_equal(blocks: &[Block]) -> f64 {
    if blocks.len() < 2 || blocks.iter().any(|block| block.error <= 0.0) {
        return 1.0;
    }
    let n = blocks.len() as f64;
    let weights = blocks.iter().map(|block| block.error.powi(-2));
    let weights: Vec<f64> = weights.collect();
    let total: f64 = weights.iter().sum();
    let weighted = weights.iter().zip(blocks);
    let mean = weighted
        .clone()
        .map(|(w, block)| w * block.log_ratio)
        .sum::<f64>()
        / total;
    let between = weighted
        .clone()
        .map(|(w, block)| w * (block.log_ratio - mean).powi(2));
    let unsure = weighted.map(|(w, block)| (1.0 - w / total).powi(2) / block.freedom);
    let unsure: f64 = unsure.sum();
    let spread = between.sum::<f64>() / (n - 1.0);
    let f = spread / (1.0 + 2.0 * (n - 2.0) / (n * n - 1.0) * unsure);
    upper_tail(f, n - 1.0, (n * n - 1.0) / (3.0 * unsure))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(log_ratio: f64, error: f64, freedom: f64) -> Block {
        Block {
            log_ratio,
            error,
            freedom,
        }
    }

    #[test]
    fn a_worked_example() {
        let blocks = [0.1, 0.2, 0.3].map(|log_ratio| block(log_ratio, 0.01, 9.0));
        let pooled = pool(&blocks).unwrap();
        // t = 4.303 of two degrees of freedom, standard deviation 0.1.
        let half_width = 4.3027 * 0.1 / 3.0_f64.sqrt();
        assert!((pooled.log_ratio - 0.2).abs() < 1e-12);
        assert!((pooled.interval[0] - (0.2 - half_width)).abs() < 1e-4);
        assert!((pooled.next[1] - (0.2 + 2.0 * half_width)).abs() < 1e-4);
        assert!(pooled.p_equal < 1e-4);
    }

    #[test]
    fn of_two_it_is_welchs_t() {
        let blocks = [block(0.0, 0.03, 5.0), block(0.1, 0.04, 8.0)];
        // t = 0.1 / 0.05 = 2; freedom = 0.0025² / (0.0009²/5 + 0.0016²/8) = 12.97; P(|T| > 2) with it is 0.0669.
        assert!(
            (p_equal(&blocks) - 0.0669).abs() < 2e-4,
            "{}",
            p_equal(&blocks)
        );
    }

    #[test]
    fn one_machine_is_no_pool_and_without_errors_nothing_is_proven() {
        assert_eq!(pool(&[block(0.1, 0.1, 5.0)]), None);
        assert_eq!(pool(&[]), None);
        assert_eq!(p_equal(&[block(0.1, 0.0, 5.0), block(0.2, 0.1, 5.0)]), 1.0);
        assert_eq!(Block::joined(&[]), None);
    }

    #[test]
    fn comparisons_of_one_machine_count_as_one() {
        let alone = block(0.1, 0.02, 6.0);
        assert_eq!(Block::joined(&[alone]), Some(alone));
        let equal = Block::joined(&[alone, alone]).unwrap();
        assert_eq!((equal.log_ratio, equal.freedom), (0.1, 12.0));
        assert!((equal.error - 0.02 / 2.0_f64.sqrt()).abs() < 1e-12);
        let apart = Block::joined(&[block(0.0, 0.01, 6.0), block(0.4, 0.01, 6.0)]).unwrap();
        assert_eq!(apart.freedom, 1.0);
        assert!((apart.error - 0.2).abs() < 1e-12);
    }
}
