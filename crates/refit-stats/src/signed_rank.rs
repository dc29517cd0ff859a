//! The exact null distribution of Wilcoxon's signed-rank statistic, and what follows from it for an interval.
//!
//! For n values symmetric about θ, the number of Walsh averages (dᵢ + dⱼ)/2, i ≤ j, below θ has the
//! distribution of that statistic whatever the values' own distribution is. So the c-th smallest and the c-th
//! largest Walsh average enclose θ with probability 1 − 2·P(T ≤ c − 1) (Hollander, Wolfe and Chicken,
//! *Nonparametric Statistical Methods*, 3rd ed., §3.3).
//!
//! Ties and zeros: nothing is dropped and nothing is split. With values that can tie, the closed interval
//! covers at least as often as stated, never less (see `a_coarse_clock_keeps_the_coverage`).

/// Which Walsh averages bound the interval, and what they earn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    /// 1 is the smallest and the largest, 2 the second from either end, and so on.
    pub rank: usize,
    /// Probability that the interval covers: at least 1 − alpha, more because ranks are whole.
    pub level: f64,
}

/// The fewest round pairs that carry any two-sided interval at error `alpha`: ⌈log₂(2/alpha)⌉. 6 for 0.05.
/// `usize::MAX` when no number does (`alpha` not above 0).
pub fn pairs_needed(alpha: f64) -> usize {
    // Half an error of 2⁻ⁿ is all that n signs can carry. Beyond 2⁻¹⁰⁷⁴ there are no more numbers.
    let mut tail = 1.0;
    for n in 0..=1074 {
        if tail <= alpha / 2.0 {
            return n.max(1);
        }
        tail /= 2.0;
    }
    usize::MAX
}

/// The narrowest exact interval for `n` values at two-sided error `alpha`; `None` when `n` is too small.
/// About n³/12 additions.
pub(crate) fn bound(n: usize, alpha: f64) -> Option<Bound> {
    let mut below = 0.0;
    let mut best = None;
    for (rank, probability) in (1..).zip(lower_half(n)) {
        below += probability;
        // A negated comparison would let NaN pass.
        if below <= alpha / 2.0 {
            best = Some(Bound {
                rank,
                level: 1.0 - 2.0 * below,
            });
        } else {
            break;
        }
    }
    best
}

/// The least two-sided error at which the interval of these values leaves out 0; 1 where it never does.
pub(crate) fn p_value(values: &[f64]) -> f64 {
    let averages = walsh_averages(values);
    let below = averages.iter().filter(|average| **average <= 0.0).count();
    let above = averages.iter().filter(|average| **average >= 0.0).count();
    let extreme = below.min(above);
    let tail: f64 = lower_half(values.len()).iter().take(extreme + 1).sum();
    (2.0 * tail).min(1.0)
}

/// P(T = t) for t up to half of the largest value; beyond, T is symmetric. Adding the i-th smallest value
/// adds rank i to T or nothing, each with probability ½.
fn lower_half(n: usize) -> Vec<f64> {
    let half = n * (n + 1) / 4;
    let mut probability = vec![0.0; half + 1];
    probability[0] = 1.0;
    for rank in 1..=n {
        let reached = (rank * (rank + 1) / 2).min(half);
        for t in (rank..=reached).rev() {
            probability[t] = 0.5 * (probability[t] + probability[t - rank]);
        }
        for low in &mut probability[..rank.min(half + 1)] {
            *low *= 0.5;
        }
    }
    probability
}

/// Every (dᵢ + dⱼ)/2 with i ≤ j, ascending: n·(n + 1)/2 of them.
pub(crate) fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        averages.extend(values[i..].iter().map(|b| 0.5 * (a + b)));
    }
    averages.sort_unstable_by(f64::total_cmp);
    averages
}

/// The middle of an ascending slice, the mean of both middles if even; `None` if empty. Of Walsh averages,
/// it is the Hodges–Lehmann estimate.
pub(crate) fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(0.5 * (lower + upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(T ≤ t) by listing every assignment of signs.
    fn listed(n: u32, t: u32) -> f64 {
        let sum = |signs: u32| -> u32 { (1..=n).filter(|i| signs >> (i - 1) & 1 == 1).sum() };
        let hits = (0..1_u32 << n).filter(|&signs| sum(signs) <= t);
        hits.count() as f64 / f64::from(1_u32 << n)
    }

    #[test]
    fn the_distribution_is_that_of_all_assignments_of_signs() {
        for n in 1..=11_u32 {
            let mut sum = 0.0;
            for (t, p) in lower_half(n as usize).into_iter().enumerate() {
                sum += p;
                assert!((sum - listed(n, t as u32)).abs() < 1e-12, "n {n}, t {t}");
            }
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_printed_tables() {
        // Hollander, Wolfe and Chicken, table A.4: largest t with P(T ≤ t) ≤ 0.025; the rank is t + 1.
        for (n, t) in [
            (6, 0),
            (7, 2),
            (8, 3),
            (9, 5),
            (10, 8),
            (12, 13),
            (15, 25),
            (20, 52),
        ] {
            assert_eq!(bound(n, 0.05).unwrap().rank, t + 1, "n {n}");
        }
    }

    #[test]
    fn too_few_pairs_have_no_bound() {
        for alpha in [0.5, 0.05, 0.0158, 0.0158 / 3.0, 1e-6, 1e-300] {
            let needed = pairs_needed(alpha);
            assert_eq!(needed, (2.0 / alpha).log2().ceil() as usize);
            if needed < 50 {
                assert_eq!(bound(needed - 1, alpha), None);
                assert_eq!(bound(needed, alpha).unwrap().rank, 1);
            }
        }
        for alpha in [0.0, -1.0, f64::NAN] {
            assert_eq!(pairs_needed(alpha), usize::MAX);
            assert_eq!(bound(20, alpha), None);
        }
        assert_eq!(bound(0, 0.05), None);
    }

    #[test]
    fn the_level_is_the_asked_one_or_a_little_more() {
        for n in 6..120 {
            let level = bound(n, 0.05).unwrap().level;
            assert!((0.95..0.97).contains(&level) || n < 12, "n {n}: {level}");
        }
    }

    #[test]
    fn walsh_averages_and_their_median() {
        assert_eq!(walsh_averages(&[4.0, 1.0]), [1.0, 2.5, 4.0]);
        assert_eq!(median(&walsh_averages(&[1.0, 2.0, 9.0])), Some(3.5));
        assert_eq!(median(&[]), None);
    }
}
