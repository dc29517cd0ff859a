//! The points of a sweep: `make test` tries some of them, which a seed draws, and `make test-sequences` all.

use std::fmt::{self, Display, Formatter};

use crate::random::{Random, seed};

/// Whether all are wanted: REFIT_POINTS is `all`.
pub fn all_points() -> bool {
    std::env::var("REFIT_POINTS").is_ok_and(|points| {
        assert_eq!(points, "all", "REFIT_POINTS is `all`, or not set");
        true
    })
}

/// Those that are tried.
pub struct Points<T> {
    pub tried: Vec<T>,
    of: usize,
    seed: u64,
}

impl<T: Copy> Points<T> {
    /// All, or the first one, the last four, where few calls change what `status` reports, and one of each six between
    /// them, so that each point is tried in some run.
    pub fn of(all: impl IntoIterator<Item = T>) -> Points<T> {
        let (all, seed) = (Vec::from_iter(all), seed());
        println!("seed {seed}");
        assert!(!all.is_empty(), "there is no point to try");
        let mut random = Random::new(seed);
        let (rest, last) = all.split_at(all.len().saturating_sub(4));
        let (first, between) = rest.split_at(rest.len().min(1));
        let drawn = between
            .chunks(6)
            .map(|some| some[random.below(some.len() as u64) as usize]);
        let tried = if all_points() {
            all.clone()
        } else {
            let first = first.iter().copied();
            first.chain(drawn).chain(last.iter().copied()).collect()
        };
        Points {
            tried,
            of: all.len(),
            seed,
        }
    }
}

/// `14 of 58 tried, seed 1`.
impl<T> Display for Points<T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let (tried, of, seed) = (self.tried.len(), self.of, self.seed);
        write!(f, "{tried} of {of} tried, seed {seed}")
    }
}
