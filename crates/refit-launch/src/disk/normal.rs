//! The standard normal distribution.

use std::f64::consts::TAU;

/// The z below which a part `p` of a standard normal distribution lies, for `p` from 1e-6 to 1 - 1e-6, to twelve
/// digits.
pub(super) fn score(p: f64) -> f64 {
    if p < 0.5 {
        return -score(1.0 - p);
    }
    // Above its median the distribution function is concave, so from there Newton's method comes up to the root
    // without ever passing it.
    let mut z = 0.0;
    loop {
        let step = (p - below(z)) / density(z);
        z += step;
        if step < 1e-12 {
            return z;
        }
    }
}

/// Part below `z`, not less than 0: all terms of the series are positive (Marsaglia, "Evaluating the Normal
/// Distribution", Journal of Statistical Software 11, 2004).
fn below(z: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term > sum * f64::EPSILON {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 + sum * density(z)
}

fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From tables: Abramowitz and Stegun, "Handbook of Mathematical Functions", tables 26.5 and 26.6.
    #[test]
    fn scores_are_those_of_the_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.75, 0.674_489_750_2),
            (0.9, 1.281_551_565_5),
            (0.975, 1.959_963_984_5),
            (0.99, 2.326_347_874_0),
            (0.999, 3.090_232_306_2),
            (0.9999, 3.719_016_485_5),
            (1.0 - 1e-6, 4.753_424_308_8),
        ] {
            assert!((score(p) - z).abs() < 1e-9, "{p}: {}", score(p));
            assert!((score(1.0 - p) + z).abs() < 1e-9, "{p}");
        }
    }
}
