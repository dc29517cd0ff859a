//! When each request is due.

use refit_stats::Rng;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At even distances.
    Constant,
    /// Independent of each other, as those of many clients who do not know of each other: distances are exponential.
    Poisson,
}

impl Arrivals {
    /// Every one, by the name that is typed.
    pub const ALL: [(&'static str, Arrivals); 2] = [
        ("constant", Arrivals::Constant),
        ("poisson", Arrivals::Poisson),
    ];

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Arrivals> {
        let mut all = Arrivals::ALL.into_iter();
        all.find(|(known, _)| *known == name).map(|(_, one)| one)
    }
}

/// The times of `count` requests at a mean `rate` (in a second), in nanoseconds from the start; the same for the same seed.
#[must_use]
pub fn schedule(arrivals: Arrivals, rate: u32, count: usize, seed: u64) -> Vec<u64> {
    let distance = 1e9 / f64::from(rate.max(1));
    let mut rng = Rng::new(seed);
    let mut at = 0.0;
    let due = (0..count).map(|number| match arrivals {
        Arrivals::Constant => number as f64 * distance,
        Arrivals::Poisson => {
            at -= (1.0 - rng.unit()).ln() * distance;
            at
        }
    });
    due.map(|at| at as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_arrivals_have_even_distances() {
        let due = schedule(Arrivals::Constant, 200, 4, 7);
        assert_eq!(due, [0, 5_000_000, 10_000_000, 15_000_000]);
    }

    #[test]
    fn poisson_arrivals_come_at_the_rate_and_by_chance() {
        let due = schedule(Arrivals::Poisson, 1000, 20_000, 7);
        assert!(due.is_sorted());
        // The mean of n exponential distances is off by 1/√n: four of these are 2.8 %.
        let seconds = due[due.len() - 1] as f64 / 1e9;
        assert!((seconds / 20.0 - 1.0).abs() < 0.028, "{seconds}");
        // Of exponential distances, 1 − 1/e are below the mean.
        let short = due.windows(2).filter(|two| two[1] - two[0] < 1_000_000);
        let share = short.count() as f64 / due.len() as f64;
        assert!((share - 0.632).abs() < 0.014, "{share}");
        assert_eq!(due, schedule(Arrivals::Poisson, 1000, 20_000, 7));
        assert_ne!(due, schedule(Arrivals::Poisson, 1000, 20_000, 8));
    }
}
