//! When a comparison has run long enough.

use refit_stats::LookPlan;

use super::Comparison;
use crate::experiment::{EffectRecord, Role, RunRecord};
use crate::gate::GateAnswer;
use crate::verdict::Verdict;

/// Round pairs below which a wanted precision does not end a comparison.
const PAIRS_FOR_PRECISION: usize = 8;

impl Comparison<'_> {
    pub(super) fn candidates_left(&self) -> usize {
        let variants = self.experiment.variants.iter();
        variants
            .filter(|v| v.role == Role::Candidate && v.disqualified.is_none())
            .count()
    }

    /// Whether the end depends on this metric.
    pub(super) fn decides(&self, metric: &str) -> bool {
        metric == self.experiment.main
            || self.request.gates.iter().any(|gate| gate.metric == metric)
    }

    pub(super) fn complete_pairs(&self) -> usize {
        let walls = self.experiment.runs.iter();
        let good = |run: &&RunRecord| {
            run.variant == 0 && run.round == 0 && !run.warmup && run.failure.is_none()
        };
        walls.filter(good).count()
    }

    pub(super) fn is_done(&mut self, plan: &LookPlan) -> bool {
        let pairs = self.experiment.plan.pairs;
        let last = plan.looks.last().copied().unwrap_or_default();
        if let Some(precision) = self.request.precision
            && pairs >= PAIRS_FOR_PRECISION
            && self.is_precise(precision)
        {
            return true;
        }
        let look = plan.look_after(pairs);
        if let Some(look) = look {
            self.experiment.plan.look = look;
        }
        let over = self.began.elapsed() > self.request.budget && !self.single_look;
        pairs >= last
            || over
            || (look.is_some() && self.request.precision.is_none() && self.is_settled())
    }

    fn candidate_effects(&self, metric: &str) -> impl Iterator<Item = &EffectRecord> {
        let takes_part = |index: usize| {
            let variant = &self.experiment.variants[index];
            variant.role == Role::Candidate && variant.disqualified.is_none()
        };
        let effects = self.experiment.effects.iter();
        effects.filter(move |effect| effect.metric == metric && takes_part(effect.variant))
    }

    /// The time of each variant that is shown is known this well.
    fn is_precise(&self, precision: f64) -> bool {
        let variants = self.experiment.variants.iter().enumerate().skip(1);
        let mut shown = variants
            .filter(|(_, variant)| variant.role != Role::Hidden && variant.disqualified.is_none());
        let is_narrow = |[low, high]: [f64; 2]| (high - low) / 2.0 <= precision;
        shown.all(|(index, _)| {
            let effect = self.experiment.effect(index, &self.experiment.main);
            effect
                .and_then(|effect| effect.interval)
                .is_some_and(is_narrow)
        })
    }

    /// Every candidate has a verdict on the time, and every gate an answer.
    fn is_settled(&self) -> bool {
        let has_verdict = |effect: &EffectRecord| effect.verdict.is_some_and(Verdict::is_settled);
        self.candidate_effects(&self.experiment.main)
            .all(has_verdict)
            && self.request.gates.iter().all(|gate| {
                self.candidate_effects(&gate.metric)
                    .all(|effect| gate.answer(Some(effect)) != GateAnswer::Undecided)
            })
    }
}
