//! The slot effect: what the position within a round does to a run.

use crate::effect::{Effect, PairSample, effect_of};

/// By how much a run's metric grows because it comes *later* in its round than the run it is compared with
/// (negative: the earlier one pays, as with a cold first slot). Half the difference between the log-ratios of
/// the rounds in which the baseline ran before and after the candidate; drift within a round is part of it.
///
/// `Some` only when its interval at two-sided error `alpha` excludes 0: there is something to tell. Mirrored
/// rounds keep it out of the effects either way, so this is a remark on the machine, not a correction.
pub fn slot_effect(samples: &[PairSample], alpha: f64) -> Option<Effect> {
    let differences: Vec<f64> = samples.iter().map(PairSample::slot_difference).collect();
    effect_of(&differences, alpha)
        .filter(|effect| effect.interval.is_some_and(|i| i.excludes_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Runs in which the first of two pays `penalty`, with up to ±0.5 % of noise; the candidate takes 30 % less.
    fn runs(penalty: f64, pairs: usize) -> Vec<PairSample> {
        let mut rng = Rng::new(5);
        let mut noise = move || 1.0 + 0.01 * (rng.unit() - 0.5);
        (0..pairs)
            .map(|i| {
                let baseline_first = i % 3 == 0;
                let mut paid = |first| if first { 1.0 + penalty } else { 1.0 } * noise();
                let baseline = [paid(baseline_first), paid(!baseline_first)];
                let candidate = [0.7 * paid(!baseline_first), 0.7 * paid(baseline_first)];
                PairSample::new(baseline, candidate, baseline_first).unwrap()
            })
            .collect()
    }

    #[test]
    fn a_penalty_on_the_first_slot_is_found_and_signed() {
        let effect = slot_effect(&runs(0.02, 12), 0.05).unwrap();
        assert!((effect.change() + 0.02).abs() < 0.003, "{effect:?}");
    }

    #[test]
    fn nothing_is_reported_without_one_or_with_too_few_pairs() {
        assert_eq!(slot_effect(&runs(0.0, 12), 0.05), None);
        assert_eq!(slot_effect(&runs(0.02, 5), 0.05), None);
        assert_eq!(slot_effect(&[], 0.05), None);
    }
}
