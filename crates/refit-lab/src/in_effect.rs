//! Which settings were in effect in the runs of their variant. A candidate is
//! disqualified when none of its settings was.

use std::collections::BTreeMap;

use refit_run::{InEffect, Reasons, Run, Testimony, WhyNot};

use crate::experiment::{Disqualified, Experiment, Role, RunRecord, SettingRecord, VariantRecord};

/// Sets what the runs so far show of each setting, and disqualifies the candidates that
/// were nowhere in effect. `witnessed`: the runs that had the kernel as witness, by variant.
pub fn record_what_was_in_effect(experiment: &mut Experiment, witnessed: &BTreeMap<usize, Run>) {
    if experiment.is_elsewhere() {
        return;
    }
    let runs = &experiment.runs;
    let of = |variant: usize, record: &SettingRecord| {
        let counts = |run: &&RunRecord| run.variant == variant && run.failure.is_none();
        let mut runs = runs.iter().filter(counts).peekable();
        runs.peek()?;
        let each = runs.map(|run| InEffect::of(&record.setting, &run.run));
        let measured = InEffect::of_runs(each);
        let seen = witnessed.get(&variant);
        let seen = seen.map(|run| InEffect::of(&record.setting, run));
        Some(match (&measured, seen) {
            // The kernel saw what refit did not.
            (_, Some(partly @ InEffect::Partly(_))) => partly,
            (InEffect::Unknown | InEffect::Nowhere(_), Some(nowhere @ InEffect::Nowhere(_))) => {
                nowhere
            }
            // A filter may have answered calls that nobody counted; but the baseline makes none.
            (InEffect::Unknown, Some(InEffect::Unknown))
                if record.is_about_syncs() && asks_for_nothing(witnessed) =>
            {
                InEffect::no_sync_call()
            }
            _ => measured,
        })
    };
    for record in &mut experiment.with {
        record.in_effect = of(0, record);
    }
    for (index, variant) in experiment.variants.iter_mut().enumerate() {
        for record in &mut variant.settings {
            record.in_effect = of(index, record);
        }
        let has_failed = matches!(variant.disqualified, Some(Disqualified::Failed(_)));
        if variant.role == Role::Candidate && !has_failed {
            let not = not_in_effect(&variant.settings);
            variant.disqualified = not.or(variant.disqualified.take());
        }
    }
}

/// Why none of these settings was in effect anywhere, if that is so.
fn not_in_effect(settings: &[SettingRecord]) -> Option<Disqualified> {
    let mut all: Vec<WhyNot> = Vec::new();
    for record in settings {
        let Some(InEffect::Nowhere(Reasons(reasons))) = &record.in_effect else {
            return None;
        };
        let new: Vec<WhyNot> = (reasons.iter())
            .filter(|reason| !all.contains(reason))
            .cloned()
            .collect();
        all.extend(new);
    }
    (!all.is_empty()).then_some(Disqualified::NotInEffect(Reasons(all)))
}

/// Whether a candidate was disqualified as its settings were nowhere in effect, as far as refit saw.
pub fn is_nowhere(variant: &VariantRecord) -> bool {
    variant.role == Role::Candidate
        && matches!(variant.disqualified, Some(Disqualified::NotInEffect(_)))
}

/// Whether the kernel saw no durable call of the baseline, and nothing else of it is hidden.
fn asks_for_nothing(witnessed: &BTreeMap<usize, Run>) -> bool {
    let baseline = witnessed.get(&0);
    baseline.is_some_and(|run| {
        let seen = match &run.witness {
            Some(Testimony::Seen(seen)) => seen,
            _ => return false,
        };
        let is_watched = !seen.filesystems.is_empty() && seen.lost == 0;
        is_watched
            && seen.calls == 0
            && run.syncs(|calls| calls.seen) == 0
            && run.coverage.unknown.is_empty()
            && run.survivors.is_empty()
    })
}
