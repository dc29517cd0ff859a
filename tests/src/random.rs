//! Numbers that differ from run to run; a test prints its seed, and REFIT_SEED is that of another run.

use std::time::{SystemTime, UNIX_EPOCH};

/// xorshift64.
pub struct Random(u64);

impl Random {
    /// Where the numbers of a seed begin.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A seed, which is printed.
    pub fn of_now() -> Random {
        let seed = seed();
        println!("seed {seed}");
        Random::new(seed)
    }

    /// The next number, below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// REFIT_SEED, or a new one.
pub fn seed() -> u64 {
    if let Ok(text) = std::env::var("REFIT_SEED") {
        return text.parse().expect("REFIT_SEED is a number");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64)
}
