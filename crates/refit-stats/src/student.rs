//! Student's t for whole degrees of freedom: the distribution in closed form (Abramowitz and Stegun, *Handbook of
//! Mathematical Functions*, 26.7.3 and 26.7.4), its quantile by bisection.

/// Degrees of freedom with which Student's t is as good as normal.
pub(crate) const MANY: usize = 1000;

/// P(|T| > |t|) with `freedom` degrees of freedom, which has to be above 0.
pub(crate) fn two_sided_tail(t: f64, freedom: usize) -> f64 {
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let first = if freedom % 2 == 1 { cosine } else { 1.0 };
    let mut term = first;
    let mut sum = if freedom == 1 { 0.0 } else { first };
    // cos² grows each term by (k − 1)/k, k even, or k/(k + 1) for odd degrees of freedom.
    let mut k = 2 + freedom % 2;
    while k + 2 <= freedom {
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        sum += term;
        k += 2;
    }
    let inside = if freedom % 2 == 1 {
        (angle + sine * sum) * std::f64::consts::FRAC_2_PI
    } else {
        sine * sum
    };
    (1.0 - inside).max(0.0)
}

/// The t that |T| exceeds with probability `alpha`; infinite where none does.
pub(crate) fn two_sided_quantile(alpha: f64, freedom: usize) -> f64 {
    if alpha.is_nan() || alpha <= 1e-12 || freedom == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_tail(high, freedom) > alpha && high < 1e13 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if two_sided_tail(middle, freedom) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_printed_tables() {
        // Two-sided 5 %, 1 % and 0.1 % of any printed table.
        for (freedom, printed) in [
            (1, [12.706, 63.657, 636.619]),
            (2, [4.303, 9.925, 31.599]),
            (3, [3.182, 5.841, 12.924]),
            (4, [2.776, 4.604, 8.610]),
            (5, [2.571, 4.032, 6.869]),
            (10, [2.228, 3.169, 4.587]),
            (23, [2.069, 2.807, 3.768]),
            (120, [1.980, 2.617, 3.373]),
        ] {
            for (alpha, t) in [0.05, 0.01, 0.001].into_iter().zip(printed) {
                let found = two_sided_quantile(alpha, freedom);
                assert!((found - t).abs() < 0.0006, "{freedom} {alpha}: {found} {t}");
            }
        }
    }

    #[test]
    fn an_impossible_error_has_no_quantile_and_nothing_is_beyond_infinity() {
        for alpha in [0.0, -1.0, f64::NAN] {
            assert_eq!(two_sided_quantile(alpha, 3), f64::INFINITY);
        }
        assert_eq!(two_sided_quantile(0.05, 0), f64::INFINITY);
        for freedom in 1..40 {
            assert!(two_sided_tail(f64::INFINITY, freedom) < 1e-12);
            assert_eq!(two_sided_tail(0.0, freedom), 1.0);
        }
    }
}
