//! Random numbers of a seed.

/// xorshift64* (Vigna 2016).
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Random {
        // Zero would stay zero; neighbours shall begin far from each other.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next one.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 to below `limit`; 0 where there is nothing to choose from.
    pub fn below(&mut self, limit: usize) -> usize {
        match limit as u64 {
            0 => 0,
            limit => usize::try_from((self.next() >> 16) % limit).unwrap_or(0),
        }
    }

    /// One of these.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A place in `length` bytes, and a length from there: mostly short.
    pub fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        let most = match self.below(4) {
            0 => length,
            1 => 256,
            _ => 16,
        };
        let rest = (length - start).min(most);
        start..start + self.below(rest + 1)
    }
}
