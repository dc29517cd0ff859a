//! The level of each look that makes several looks together err as often as was agreed.
//!
//! One constant critical value at every look (Pocock, "Group sequential methods in the design and analysis of
//! clinical trials", Biometrika 64, 1977), found by numerical integration of the running sum's density
//! (Armitage, McPherson and Rowe, "Repeated significance tests on accumulating data", JRSS A 132, 1969).
//! For equally spaced looks this gives the textbook constants (Jennison and Turnbull, *Group Sequential
//! Methods*, 2000, table 2.1: z = 2.413 for five looks, 0.0158 each). Looks that begin early and spread out
//! are less alike, so those constants would overspend: 0.057 instead of 0.05 for 7, 13, 23, 41, 74 round
//! pairs, 0.063 for 7 … 200. Hence the integration, for the looks that are really taken.

/// Intervals of Simpson's rule across one look. With 64 the level is right to four digits.
const STEPS: usize = 64;

/// The two-sided error that each of `looks` (round pairs, ascending, all above 0) may use for an overall
/// two-sided error of `overall`, a small one.
pub(crate) fn level_per_look(looks: &[usize], overall: f64) -> f64 {
    if looks.len() < 2 {
        return overall;
    }
    // The logarithm of the error is smooth and nearly straight: the secant needs five or six steps.
    let excess = |critical| (overall_error(looks, critical) / overall).ln();
    let (mut before, mut now) = (2.2, 2.6);
    let mut excess_before = excess(before);
    for _ in 0..12 {
        let excess_now = excess(now);
        if excess_now.abs() < 1e-6 {
            break;
        }
        let next = now - excess_now * (now - before) / (excess_now - excess_before);
        (before, excess_before, now) = (now, excess_now, next);
    }
    overall_error(&looks[..1], now)
}

/// How often a mean of nothing but noise is beyond `critical` standard errors at one look or more.
fn overall_error(looks: &[usize], critical: f64) -> f64 {
    let mut at = 0.0;
    let mut inside = vec![(0.0, 1.0)];
    for &pairs in looks {
        let sd = (pairs as f64 - at).sqrt();
        let end = critical * (pairs as f64).sqrt();
        inside = grid(end)
            .map(|(sum, weight)| {
                let density = inside
                    .iter()
                    .map(|(from, mass)| mass * normal((sum - from) / sd));
                (sum, weight * density.sum::<f64>() / sd)
            })
            .collect();
        at = pairs as f64;
    }
    1.0 - inside.iter().map(|(_, mass)| mass).sum::<f64>()
}

/// The points of Simpson's rule over −end … end, each with its weight.
fn grid(end: f64) -> impl Iterator<Item = (f64, f64)> {
    let step = 2.0 * end / STEPS as f64;
    (0..=STEPS).map(move |i| {
        let weight = match i {
            0 | STEPS => 1.0,
            _ if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (step * i as f64 - end, weight * step / 3.0)
    })
}

fn normal(z: f64) -> f64 {
    const ROOT_OF_TWO_PI: f64 = 2.506_628_274_631_000_7;
    (-0.5 * z * z).exp() / ROOT_OF_TWO_PI
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equally_spaced_looks_give_the_textbook_constants() {
        // Jennison and Turnbull (2000), table 2.1, alpha = 0.05.
        let published = [
            1.960, 2.178, 2.289, 2.361, 2.413, 2.453, 2.485, 2.512, 2.535, 2.555,
        ];
        for (looks, z) in (1..).zip(published) {
            let spaced: Vec<usize> = (1..=looks).map(|look| 7 * look).collect();
            let expected = overall_error(&[1], z);
            let level = level_per_look(&spaced, 0.05);
            assert!(
                (level / expected - 1.0).abs() < 0.003,
                "{looks} looks: {level} {expected}"
            );
        }
    }

    #[test]
    fn one_look_may_use_it_all_and_the_error_is_the_normal_tail() {
        assert_eq!(level_per_look(&[30], 0.05), 0.05);
        for (z, tail) in [
            (1.959_963_985, 0.05),
            (2.575_829_304, 0.01),
            (3.290_526_731, 0.001),
        ] {
            assert!((overall_error(&[9], z) - tail).abs() < 1e-7);
        }
    }

    #[test]
    fn early_looks_must_use_less_each() {
        let equal = level_per_look(&[15, 30, 45, 60, 75], 0.05);
        let early = level_per_look(&[8, 14, 24, 43, 75], 0.05);
        assert!((equal - 0.015_81).abs() < 1e-4, "{equal}");
        assert!(early < 0.014, "{early}");
    }
}
