//! Whether a quantity grows with the work that was done: memory against requests served, and not against time.
//!
//! Samples of a running program are not independent draws: they wander, step, saw with a garbage collector, and rise
//! while caches fill. So the first third is warm-up and never looked at; what follows is cut into [`BLOCKS`] blocks, of
//! which only the medians count; and growth has to come *again and again*: the interval is the exact one of Wilcoxon's
//! signed ranks for the slopes from each block to the next. Of a random walk without drift these are independent and
//! symmetric, so the interval holds; of noise about a level each is followed by its opposite, so it is too wide. One
//! step, however high, is one of them. (The medians of neighbouring blocks of a random walk share a part of their way: there
//! the interval covers in 93 of 100, and calls 3 of 100 growing.) The estimate is Theil's and Sen's: the median of the slopes between all pairs
//! of blocks.
//!
//! What saturates is told from what grows by the two halves of what was looked at: see [`Trend::Settles`].
//! `examples/growth_calibration.rs` simulates how often all this is wrong.

use crate::signed_rank::{bound, median, walsh_averages};

/// Blocks that the samples after the warm-up are cut into: eight slopes, of which the interval at 95 % allows two
/// against it.
pub const BLOCKS: usize = 9;
/// Fewest samples, the warm-up included: two in each block.
pub const FEWEST_SAMPLES: usize = BLOCKS * 2 * 3 / 2;
/// What rises in its second half at most this part of what it rose in its first is filling up.
const SETTLING: f64 = 0.5;
/// A single step makes at least this part of all movement.
const STEP: f64 = 0.6;

/// One look at a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Operations done so far; does not fall.
    pub operations: f64,
    /// The quantity then.
    pub value: f64,
}

/// How a quantity goes with the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// It grows again and again, to the end.
    Grows,
    /// It falls again and again.
    Falls,
    /// It rose or fell, but in the second half by no more than half as much as in the first: it is filling up, or a
    /// warm-up that was longer than a third. More operations tell.
    Settles,
    /// One step, and level before and after it.
    Steps,
    /// The whole interval is smaller than the least change that matters.
    Level,
    /// None of these can be told: more operations, or less noise.
    Unclear,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The word for it.
    pub trend: Trend,
    /// Change for each operation: the median of the slopes between all pairs of blocks.
    pub slope: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability to cover that was achieved, as exact ranks allow: at least what was asked for.
    pub level: f64,
    /// Operations that were looked at, after the warm-up.
    pub operations: f64,
    /// Samples that were looked at.
    pub samples: usize,
}

/// Why nothing can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GrowthError {
    /// Fewer than [`FEWEST_SAMPLES`].
    TooFewSamples(usize),
    /// From one block to the next no operation was done, or the count fell: nothing to set memory against.
    NoOperations,
    /// An infinity, or something that is not a number.
    NotFinite,
    /// This error level needs more blocks.
    TooStrict,
}

/// Judges a quantity against operations, both in the order of time. `alpha` is the two-sided error of the interval,
/// and `least` the smallest change over all that is looked at that matters.
///
/// # Errors
/// [`GrowthError`].
pub fn growth(samples: &[Observation], alpha: f64, least: f64) -> Result<Growth, GrowthError> {
    if samples.len() < FEWEST_SAMPLES {
        return Err(GrowthError::TooFewSamples(samples.len()));
    }
    if samples
        .iter()
        .any(|one| !(one.operations.is_finite() && one.value.is_finite()))
    {
        return Err(GrowthError::NotFinite);
    }
    let settled = &samples[samples.len().div_ceil(3)..];
    let blocks: Vec<Observation> = (0..BLOCKS)
        .map(|block| {
            middle(&settled[settled.len() * block / BLOCKS..settled.len() * (block + 1) / BLOCKS])
        })
        .collect();
    let steps: Vec<f64> = blocks
        .windows(2)
        .map(|pair| pair[1].operations - pair[0].operations)
        .collect();
    if steps.iter().any(|step| *step <= 0.0) {
        return Err(GrowthError::NoOperations);
    }
    let changes: Vec<f64> = blocks
        .windows(2)
        .map(|pair| pair[1].value - pair[0].value)
        .collect();
    let slopes: Vec<f64> = changes
        .iter()
        .zip(&steps)
        .map(|(change, step)| change / step)
        .collect();
    let limits = bound(slopes.len(), alpha).ok_or(GrowthError::TooStrict)?;
    let averages = walsh_averages(&slopes);
    let (low, high) = (
        averages[limits.rank - 1],
        averages[averages.len() - limits.rank],
    );
    let slope = theil_sen(&blocks);
    let (low, high) = (low.min(slope), high.max(slope));
    let operations = blocks[BLOCKS - 1].operations - blocks[0].operations;
    Ok(Growth {
        trend: trend(&slopes, &changes, (low, high), least, operations),
        slope,
        low,
        high,
        level: limits.level,
        operations,
        samples: settled.len(),
    })
}

fn trend(
    slopes: &[f64],
    changes: &[f64],
    (low, high): (f64, f64),
    least: f64,
    operations: f64,
) -> Trend {
    let (first, second) = slopes.split_at(slopes.len() / 2);
    let (first, second): (f64, f64) = (first.iter().sum(), second.iter().sum());
    let net: f64 = changes.iter().sum();
    let moved: f64 = changes.iter().map(|change| change.abs()).sum();
    let most = changes
        .iter()
        .fold(0.0_f64, |most, change| most.max(change.abs()));
    match () {
        () if net.abs() <= least && low * operations >= -least && high * operations <= least => {
            Trend::Level
        }
        () if low > 0.0 && second > SETTLING * first => Trend::Grows,
        () if high < 0.0 && second < SETTLING * first => Trend::Falls,
        () if low > 0.0 || high < 0.0 => Trend::Settles,
        () if most > STEP * moved => Trend::Steps,
        () => Trend::Unclear,
    }
}

/// The medians of a block, which is not empty.
fn middle(block: &[Observation]) -> Observation {
    let of = |field: fn(&Observation) -> f64| {
        let mut values: Vec<f64> = block.iter().map(field).collect();
        values.sort_unstable_by(f64::total_cmp);
        median(&values).expect("a block has samples")
    };
    Observation {
        operations: of(|one| one.operations),
        value: of(|one| one.value),
    }
}

fn theil_sen(blocks: &[Observation]) -> f64 {
    let mut slopes = Vec::new();
    for (at, first) in blocks.iter().enumerate() {
        let later = blocks[at + 1..].iter();
        slopes.extend(
            later.map(|last| (last.value - first.value) / (last.operations - first.operations)),
        );
    }
    slopes.sort_unstable_by(f64::total_cmp);
    median(&slopes).expect("there are blocks")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: u32, value: impl Fn(f64) -> f64) -> Vec<Observation> {
        let one = |at: u32| Observation {
            operations: f64::from(at) * 10.0,
            value: value(f64::from(at) * 10.0),
        };
        (0..count).map(one).collect()
    }

    fn judged(value: impl Fn(f64) -> f64) -> Growth {
        growth(&samples(120, value), 0.05, 1000.0).expect("enough samples")
    }

    #[test]
    fn a_leak_has_its_slope() {
        let leak = judged(|operations| 1e6 + 48.0 * operations);
        assert_eq!(leak.trend, Trend::Grows);
        assert!((leak.slope - 48.0).abs() < 1e-9 && leak.low <= 48.0 && leak.high >= 48.0);
        // P(T ≤ 3) of eight is 5 of 256 (Hollander, Wolfe and Chicken, table A.4).
        assert_eq!((leak.samples, leak.level), (80, 1.0 - 2.0 * 5.0 / 256.0));
    }

    #[test]
    fn what_does_not_go_on_does_not_grow() {
        for (trend, value) in [
            (Trend::Level, (|_| 1e6) as fn(f64) -> f64),
            (Trend::Level, |operations| 1e6 + operations),
            (
                Trend::Steps,
                |operations| if operations < 700.0 { 1e6 } else { 2e6 },
            ),
            (Trend::Settles, |operations| {
                1e6 * (1.0 - (-operations / 200.0).exp())
            }),
            (Trend::Falls, |operations| 1e6 - 100.0 * operations),
            // All of it within the first third.
            (Trend::Level, |operations| 1e5 * operations.min(300.0)),
            (Trend::Unclear, |operations| 1e5 * (operations / 35.0).sin()),
        ] {
            assert_eq!(judged(value).trend, trend);
        }
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        let some = samples(FEWEST_SAMPLES as u32 - 1, |operations| operations);
        assert_eq!(
            growth(&some, 0.05, 0.0),
            Err(GrowthError::TooFewSamples(26))
        );
        let few = samples(FEWEST_SAMPLES as u32, |operations| 48.0 * operations);
        assert_eq!(growth(&few, 0.05, 0.0).expect("enough").trend, Trend::Grows);
        assert_eq!(growth(&few, 0.001, 0.0), Err(GrowthError::TooStrict));
        let mut idle = samples(120, |operations| operations);
        idle.iter_mut()
            .for_each(|one| one.operations = one.operations.min(800.0));
        assert_eq!(growth(&idle, 0.05, 0.0), Err(GrowthError::NoOperations));
        idle[3].value = f64::NAN;
        assert_eq!(growth(&idle, 0.05, 0.0), Err(GrowthError::NotFinite));
    }
}
