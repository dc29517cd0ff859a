//! Which of many findings stand: the correction for having looked at all of them.

/// Which of these p-values stand together at `level` (Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 6, 1979): the chance that *any* of those that stand is only
/// chance is at most `level`, however they depend on each other, which the metrics of one run do.
///
/// Not the milder rule of Benjamini and Hochberg: that one lets a share of what is printed be chance, and a
/// reader sees one line, not a share of many.
pub fn standing(p_values: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut stands = vec![false; p_values.len()];
    for (rank, &index) in order.iter().enumerate() {
        // A negated comparison would let NaN pass.
        if p_values[index] <= level / (p_values.len() - rank) as f64 {
            stands[index] = true;
        } else {
            break;
        }
    }
    stands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn each_step_is_a_little_milder_and_the_first_that_fails_ends_it() {
        // 0.05 / 4, / 3, / 2, / 1.
        let p_values = [0.04, 0.012, 0.03, 0.016];
        assert_eq!(standing(&p_values, 0.05), [false, true, false, true]);
        assert_eq!(standing(&[0.012, 0.013, 0.02, 0.04], 0.05), [true; 4]);
        // The smallest alone is not small enough for four.
        assert_eq!(standing(&[0.04, 0.013, 0.03, 0.016], 0.05), [false; 4]);
        assert_eq!(standing(&[], 0.05), [false; 0]);
        assert_eq!(standing(&[f64::NAN, 0.01], 0.05), [false, true]);
    }

    #[test]
    fn of_thirteen_that_are_only_chance_one_stands_in_a_twentieth_of_cases() {
        let mut rng = Rng::new(3);
        let (trials, mut raw, mut corrected) = (4000, 0, 0);
        for _ in 0..trials {
            let p_values: Vec<f64> = (0..13).map(|_| rng.unit()).collect();
            raw += u32::from(p_values.iter().any(|p| *p <= 0.05));
            corrected += u32::from(standing(&p_values, 0.05).contains(&true));
        }
        let share = |count: u32| f64::from(count) / f64::from(trials);
        assert!(share(raw) > 0.45, "{raw}");
        assert!((0.035..0.06).contains(&share(corrected)), "{corrected}");
    }
}
