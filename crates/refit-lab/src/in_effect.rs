//! Which settings were in effect in the runs of their variant. A candidate is
//! disqualified when none of its settings was.

use refit_run::InEffect;

use crate::experiment::{Experiment, Role, RunRecord, SettingRecord};

/// Sets what the runs so far show of each setting, and disqualifies the candidates that
/// were nowhere in effect.
pub fn record_what_was_in_effect(experiment: &mut Experiment) {
    if experiment.is_elsewhere() {
        return;
    }
    let runs = &experiment.runs;
    let of = |variant: usize, record: &SettingRecord| {
        let counts = |run: &&RunRecord| run.variant == variant && run.failure.is_none();
        let mut runs = runs.iter().filter(counts).peekable();
        runs.peek()?;
        let each = runs.map(|run| InEffect::of(&record.setting, &run.run));
        Some(InEffect::of_runs(each))
    };
    for record in &mut experiment.with {
        record.in_effect = of(0, record);
    }
    for (index, variant) in experiment.variants.iter_mut().enumerate() {
        for record in &mut variant.settings {
            record.in_effect = of(index, record);
        }
        if variant.role == Role::Candidate && variant.disqualified.is_none() {
            variant.disqualified = not_in_effect(&variant.settings);
        }
    }
}

/// Why none of these settings was in effect anywhere, if that is so.
fn not_in_effect(settings: &[SettingRecord]) -> Option<String> {
    let reason = |record: &SettingRecord| match &record.in_effect {
        Some(InEffect::Nowhere(reason)) => Some(reason.clone()),
        _ => None,
    };
    let mut reasons: Vec<String> = settings.iter().map(reason).collect::<Option<_>>()?;
    reasons.dedup();
    (!reasons.is_empty()).then(|| format!("not in effect: {}", reasons.join("; ")))
}
