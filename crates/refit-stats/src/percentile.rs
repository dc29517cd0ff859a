//! Percentiles of a sample, with intervals that assume nothing of its distribution.
//!
//! The number of values below the true q-quantile is binomial, so two order statistics enclose it with a
//! probability that is exact for a continuous distribution and larger with ties (David and Nagaraja, *Order
//! Statistics*, 3rd ed., §7.1). This holds for independent values: for requests against one server it
//! describes that run and no other, so across runs compare the runs' percentiles by [`crate::estimate`].

use std::fmt;

/// A percentile that the sample supports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentile {
    /// The smallest value that at least this part of the sample does not exceed (nearest rank).
    pub value: f64,
    /// Lower end of the interval, a value of the sample.
    pub low: f64,
    /// Upper end of the interval, a value of the sample.
    pub high: f64,
    /// Probability to cover that was achieved.
    pub level: f64,
}

/// Why there is no percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PercentileError {
    /// The sample cannot bound this percentile on both sides.
    TooFewSamples {
        /// How many there are.
        samples: usize,
        /// How many can: [`samples_needed`].
        needed: usize,
    },
    /// The sample holds an infinity or something that is not a number.
    NotFinite,
}

impl fmt::Display for PercentileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewSamples { samples, needed } => write!(
                f,
                "{samples} samples cannot bound this percentile: {needed} can"
            ),
            Self::NotFinite => f.write_str("a sample is not a finite number"),
        }
    }
}

impl std::error::Error for PercentileError {}

/// The fewest samples that bound the `quantile` (between 0 and 1) on both sides at two-sided error `alpha`:
/// 36, 72, 368, 3688 for p90, p95, p99, p99.9 at 0.05. `usize::MAX` when no number does. Ten times as many
/// give a bound worth printing.
pub fn samples_needed(quantile: f64, alpha: f64) -> usize {
    let farther = quantile.max(1.0 - quantile);
    let needed = ((alpha / 2.0).ln() / farther.ln()).ceil();
    if needed.is_finite() && quantile > 0.0 && quantile < 1.0 {
        (needed as usize).max(1)
    } else {
        usize::MAX
    }
}

/// The `quantile` (0.99 is p99) of `sample`, in its own unit and any order, with the narrowest interval of
/// order statistics at two-sided error `alpha`.
pub fn percentile(
    sample: &[f64],
    quantile: f64,
    alpha: f64,
) -> Result<Percentile, PercentileError> {
    if !sample.iter().all(|value| value.is_finite()) {
        return Err(PercentileError::NotFinite);
    }
    let samples = sample.len();
    let too_few = PercentileError::TooFewSamples {
        samples,
        needed: samples_needed(quantile, alpha),
    };
    let (low, high, level) = order_statistics(samples, quantile, alpha).ok_or(too_few)?;
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = ((samples as f64 * quantile).ceil() as usize).clamp(1, samples);
    Ok(Percentile {
        value: sorted[rank - 1],
        low: sorted[low - 1],
        high: sorted[high - 1],
        level,
    })
}

/// Ranks, from 1, of the values that enclose the quantile, and their coverage: at most alpha/2 of the
/// binomial number of values below it lies under the lower rank, and as much at or above the upper one.
fn order_statistics(n: usize, quantile: f64, alpha: f64) -> Option<(usize, usize, f64)> {
    if n < samples_needed(quantile, alpha) {
        return None;
    }
    let (first, probability) = binomial(n, quantile);
    let (mut below, mut low) = (0.0, first);
    while below + probability[low - first] <= alpha / 2.0 {
        below += probability[low - first];
        low += 1;
    }
    let (mut above, mut high) = (0.0, first + probability.len());
    while above + probability[high - 1 - first] <= alpha / 2.0 {
        above += probability[high - 1 - first];
        high -= 1;
    }
    (low >= 1 && high <= n).then_some((low, high, 1.0 - below - above))
}

/// The binomial probabilities that are not negligible, and the count that the first of them is for. From the
/// mode outwards by their ratios, then scaled to 1: no logarithms, no overflow, exact to rounding.
fn binomial(n: usize, p: f64) -> (usize, Vec<f64>) {
    const NEGLIGIBLE: f64 = 1e-25;
    let mode = (((n + 1) as f64 * p) as usize).min(n);
    let odds = p / (1.0 - p);
    let mut weights = std::collections::VecDeque::from([1.0]);
    let mut first = mode;
    while first > 0 && weights[0] > NEGLIGIBLE {
        let ratio = first as f64 / ((n - first + 1) as f64 * odds);
        weights.push_front(weights[0] * ratio);
        first -= 1;
    }
    let (mut last, mut weight) = (mode, 1.0);
    while last < n && weight > NEGLIGIBLE {
        weight *= (n - last) as f64 * odds / (last + 1) as f64;
        weights.push_back(weight);
        last += 1;
    }
    let total: f64 = weights.iter().sum();
    (first, weights.into_iter().map(|w| w / total).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_needed_numbers_are_the_known_ones_and_exact() {
        for (quantile, needed) in [(0.5, 6), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688)] {
            assert_eq!(samples_needed(quantile, 0.05), needed);
            assert_eq!(samples_needed(1.0 - quantile, 0.05), needed);
            assert_eq!(order_statistics(needed - 1, quantile, 0.05), None);
            let (_, high, level) = order_statistics(needed, quantile, 0.05).unwrap();
            assert!(
                high <= needed && level >= 0.95,
                "{quantile}: {high} {level}"
            );
        }
        for nonsense in [0.0, 1.0, -0.5, 2.0, f64::NAN] {
            assert_eq!(samples_needed(nonsense, 0.05), usize::MAX);
        }
        assert_eq!(samples_needed(0.5, 0.0), usize::MAX);
    }

    #[test]
    fn binomial_probabilities_are_right_small_and_sane_large() {
        let (first, probability) = binomial(4, 0.25);
        let expected = [81.0, 108.0, 54.0, 12.0, 1.0].map(|x| x / 256.0);
        assert_eq!(first, 0);
        for (p, e) in probability.iter().zip(expected) {
            assert!((p - e).abs() < 1e-15);
        }
        let (first, probability) = binomial(5_000_000, 0.999);
        let mean: f64 = (first..).zip(&probability).map(|(k, p)| k as f64 * p).sum();
        assert!((mean - 4_995_000.0).abs() < 1e-3, "{mean}");
    }

    #[test]
    fn the_median_of_ten_has_the_printed_interval() {
        let sample: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        let p50 = percentile(&sample, 0.5, 0.05).unwrap();
        assert_eq!((p50.low, p50.value, p50.high), (2.0, 5.0, 9.0));
        assert!((p50.level - (1.0 - 22.0 / 1024.0)).abs() < 1e-12);
    }

    #[test]
    fn what_it_cannot_support_is_refused() {
        let error = percentile(&[1.0; 300], 0.99, 0.05).unwrap_err();
        let sentence = "300 samples cannot bound this percentile: 368 can";
        assert_eq!(error.to_string(), sentence);
        assert!(percentile(&[], 0.5, 0.05).is_err());
        let error = percentile(&[1.0, f64::NAN], 0.5, 0.05).unwrap_err();
        assert_eq!(error, PercentileError::NotFinite);
    }

    #[test]
    fn intervals_cover_skewed_samples() {
        let mut rng = Rng::new(2);
        for (n, quantile) in [(40, 0.5), (100, 0.9), (1000, 0.99)] {
            let truth = -(1.0_f64 - quantile).ln();
            let covered = (0..1000).filter(|_| {
                let sample: Vec<f64> = (0..n).map(|_| -(1.0 - rng.unit()).ln()).collect();
                let p = percentile(&sample, quantile, 0.05).unwrap();
                p.low <= truth && truth <= p.high
            });
            let covered = covered.count();
            assert!(
                (935..=995).contains(&covered),
                "p{quantile} of {n}: {covered}"
            );
        }
    }
}
