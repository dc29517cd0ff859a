//! A small seeded generator, so that a comparison can be repeated from the seed in its result.
//!
//! xoshiro256++ 1.0, its state filled by SplitMix64, as their authors advise (Blackman and Vigna, "Scrambled
//! linear pseudorandom number generators", ACM TOMS 47(4), 2021; reference code at prng.di.unimi.it, public
//! domain). Not for secrets. The stream for a seed never changes: results name their seed.

/// A stream of pseudo-random numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of `seed`; every seed, 0 included, is a good one.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Self {
            state: std::array::from_fn(|_| split_mix_64(&mut mixer)),
        }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A whole number in `0..bound`, each equally likely (Lemire, "Fast random integer generation in an
    /// interval", ACM TOMACS 29(1), 2019); 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let biased = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= biased {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in `[0, 1)`, a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fisher–Yates: every order of `items` equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generators_give_the_published_numbers() {
        let mut state = 1_234_567;
        let first: [u64; 3] = std::array::from_fn(|_| split_mix_64(&mut state));
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(first, published);

        let mut rng = Rng {
            state: [1, 2, 3, 4],
        };
        let first: [u64; 5] = std::array::from_fn(|_| rng.next_u64());
        let published = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
        ];
        assert_eq!(first, published);
    }

    #[test]
    fn below_and_unit_keep_their_bounds() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        for bound in [2, 3, 1000, u64::MAX] {
            assert!((0..100).all(|_| rng.below(bound) < bound));
        }
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }

    #[test]
    fn a_shuffle_reaches_each_order_equally_often() {
        let mut rng = Rng::new(7);
        let mut seen = std::collections::HashMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            *seen.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|n| (880..1120).contains(n)), "{seen:?}");
    }
}
