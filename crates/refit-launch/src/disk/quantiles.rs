//! A distribution of latencies as its (i + ½) / 1024 quantiles, which the emulated disk draws from.

use refit_session::LATENCIES;

use super::normal::score;

/// No flush of an emulated disk takes longer, wherever a distribution leads: 60 s in nanoseconds.
pub(crate) const MAX_NS: u64 = 60 * 1_000_000_000;

/// What the page holds: nanoseconds that never fall.
type Quantiles = Box<[u64; LATENCIES]>;

fn table(quantile: impl Fn(f64) -> f64) -> Quantiles {
    let mut table = Box::new([0; LATENCIES]);
    for (i, ns) in table.iter_mut().enumerate() {
        let ns_exactly = quantile((i as f64 + 0.5) / LATENCIES as f64);
        *ns = (ns_exactly.round() as u64).clamp(1, MAX_NS);
    }
    table
}

/// Through percentiles (hundredths of a percent) and their nanoseconds, both rising: log-normal by pieces, that is
/// straight in normal score against logarithm, the outermost pieces going on.
pub(super) fn of_percentiles(points: &[(u32, u64)]) -> Quantiles {
    let points: Vec<(f64, f64)> = points
        .iter()
        .map(|&(percentile, ns)| (score(f64::from(percentile) / 10_000.0), (ns as f64).ln()))
        .collect();
    table(|quantile| {
        let z = score(quantile);
        let last_piece = points.len().saturating_sub(2);
        let begins = points.partition_point(|(score, _)| *score <= z);
        let piece = begins.saturating_sub(1).min(last_piece);
        let (z0, ln0) = points[piece];
        match points.get(piece + 1) {
            Some((z1, ln1)) => ln0 + (z - z0) / (z1 - z0) * (ln1 - ln0),
            None => ln0,
        }
        .exp()
    })
}

/// Of a sample of nanoseconds, which holds at least one: straight between two neighbours of the sample, of which the
/// i-th is its (i + ½) / n quantile, and nothing beyond the least and the greatest.
pub(crate) fn of_samples(mut samples_ns: Vec<u64>) -> Quantiles {
    samples_ns.sort_unstable();
    let last = samples_ns.len() - 1;
    table(|quantile| {
        let place = (quantile * samples_ns.len() as f64 - 0.5).clamp(0.0, last as f64);
        let below = place as usize;
        let (low, high) = (samples_ns[below], samples_ns[(below + 1).min(last)]);
        low as f64 + place.fract() * (high - low) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The entries of the table between which this quantile lies, and how far from the first.
    fn neighbours(table: &Quantiles, q: f64) -> (f64, f64, f64) {
        let place = q * LATENCIES as f64 - 0.5;
        let (low, high) = (table[place as usize], table[place as usize + 1]);
        (low as f64, high as f64, place.fract())
    }

    #[test]
    fn the_table_has_the_percentiles_that_were_given() {
        for points in [
            &[(5000, 4 * MS), (9900, 30 * MS)][..],
            &[(5000, 300_000), (9500, 350_000)],
            &[(100, 90_000), (5000, 100_000), (9900, 100_000)],
            &[(9000, 2 * MS), (9500, 6_000 * MS)],
            &[
                (5000, 500_000),
                (9000, MS),
                (9900, 8 * MS),
                (9990, 250 * MS),
            ],
        ] {
            let table = of_percentiles(points);
            assert!(table.is_sorted(), "{points:?}");
            for &(percentile, given) in points {
                let (low, high, part) = neighbours(&table, f64::from(percentile) / 10_000.0);
                let given = given as f64;
                assert!(
                    low <= given && given <= high,
                    "{points:?}: p{percentile} between {low} and {high}"
                );
                // Where the slope changes between these two, only the bounds are known.
                let found = low * (high / low).powf(part);
                let apart = (found / given - 1.0).abs();
                assert!(
                    apart < 0.01 || points.len() == 4,
                    "{points:?}: p{percentile} is {found}"
                );
            }
        }
    }

    #[test]
    fn between_and_beyond_the_percentiles_it_is_log_normal() {
        // ln latency = ln 4 ms + z · s, and p99 lies 2.326 s above the median.
        let s = 7.5_f64.ln() / 2.326_347_874;
        let table = of_percentiles(&[(5000, 4 * MS), (9900, 30 * MS)]);
        for (q, z) in [
            (0.01, -2.326_347_9),
            (0.1, -1.281_551_6),
            (0.75, 0.674_489_8),
            (0.975, 1.959_964_0),
        ] {
            let expected = 4e6 * (s * z).exp();
            let (low, high, part) = neighbours(&table, q);
            let apart = (low * (high / low).powf(part) / expected - 1.0).abs();
            assert!(apart < 0.01, "{q}: {low} to {high}, expected {expected}");
        }
        let greatest = 4e6 * (s * score(1.0 - 0.5 / LATENCIES as f64)).exp();
        assert!((table[LATENCIES - 1] as f64 / greatest - 1.0).abs() < 1e-6);
    }

    #[test]
    fn one_latency_is_always_the_same() {
        assert_eq!(*of_percentiles(&[(5000, 8 * MS)]), [8 * MS; LATENCIES]);
        assert_eq!(*of_samples(vec![7]), [7; LATENCIES]);
    }

    #[test]
    fn a_steep_distribution_stays_in_bounds() {
        let table = of_percentiles(&[(5000, 1), (5001, MAX_NS)]);
        assert!(table.is_sorted());
        assert_eq!((table[0], table[LATENCIES - 1]), (1, MAX_NS));
    }

    #[test]
    fn a_sample_comes_back_as_it_was() {
        let samples: Vec<u64> = (0..LATENCIES as u64).rev().map(|i| 1000 + i * i).collect();
        let table = of_samples(samples.clone());
        assert!(samples.iter().rev().eq(table.iter()));

        let table = of_samples((1..=101).map(|i| i * 1000).collect());
        assert!(table.is_sorted());
        assert_eq!((table[0], table[LATENCIES - 1]), (1000, 101_000));
        let (low, high, _) = neighbours(&table, 0.5);
        assert!((low + high - 102_000.0).abs() < 1.0, "{low} {high}");
    }
}
