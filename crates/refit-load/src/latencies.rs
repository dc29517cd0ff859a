//! How long requests took: every one of them, each time exact to 0.1 %.

use hdrhistogram::Histogram;

/// The longest time that is told apart from longer ones: an hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;
/// Times below this are not told apart, in nanoseconds.
const SHORTEST: u64 = 1_000;
/// Digits of a time that are kept.
const DIGITS: u8 = 3;

/// Times of requests, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let all = Histogram::new_with_bounds(SHORTEST, LONGEST, DIGITS);
        let mut all = all.expect("the bounds are in order");
        // It writes to all of its memory, which is there from now on.
        all.reset();
        Latencies(all)
    }
}

impl Latencies {
    /// One more request. Longer times than an hour count as an hour.
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.min(LONGEST));
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time within which this part of the requests (0 to 1) was answered; that of the slowest one for 1.
    #[must_use]
    pub fn quantile(&self, part: f64) -> u64 {
        self.0.value_at_quantile(part).min(self.0.max())
    }

    /// Each time that occurred, rising, and how many requests took it.
    #[must_use]
    pub fn counts(&self) -> Vec<[u64; 2]> {
        let recorded = self.0.iter_recorded();
        recorded
            .map(|step| {
                [
                    step.value_iterated_to().min(self.0.max()),
                    step.count_at_value(),
                ]
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let mut all = Latencies::default();
        // 1 to 1000 ms.
        for ms in (1..=1000).rev() {
            all.record(ms * 1_000_000);
        }
        for (part, ms) in [(0.5, 500.0), (0.9, 900.0), (0.999, 999.0), (1.0, 1000.0)] {
            let found = all.quantile(part) as f64 / 1e6;
            assert!((found / ms - 1.0).abs() < 0.001, "{part}: {found}");
        }
    }

    #[test]
    fn counts_hold_every_request() {
        let mut all = Latencies::default();
        for ns in [0, 5_000, 5_000, 70_000_000, u64::MAX] {
            all.record(ns);
        }
        let counts = all.counts();
        assert_eq!(counts.iter().map(|[_, many]| many).sum::<u64>(), 5);
        assert!(counts.windows(2).all(|two| two[0][0] < two[1][0]));
        let longest = all.quantile(1.0) as f64 / LONGEST as f64;
        assert!((longest - 1.0).abs() < 0.001, "{longest}");
    }

    #[test]
    fn nothing_has_no_time() {
        assert_eq!(Latencies::default().quantile(0.99), 0);
        assert!(Latencies::default().counts().is_empty());
    }
}
