//! Whether there was nothing to gain for settings that swap syncs: the program makes none.

use refit_run::{InEffect, OPEN_SYNC, Run, Testimony};

use crate::experiment::{Experiment, Role, SettingRecord, VariantRecord};

/// How it is known that a program never syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeverSyncs {
    /// The kernel saw no durable call of one more run of it.
    ByTheKernel,
    /// refit reached all of its processes, and saw none. What a program asks the kernel for past its libraries is not
    /// seen.
    ByRefit,
}

impl NeverSyncs {
    /// How it is known that the program of a comparison never syncs; `None` where anything synced or may have, and where a
    /// candidate swaps something else than syncs or was not disqualified.
    #[must_use]
    pub fn of(experiment: &Experiment) -> Option<NeverSyncs> {
        let mut candidates = (experiment.variants.iter())
            .filter(|variant| variant.role == Role::Candidate)
            .peekable();
        candidates.peek()?;
        let mut baseline = experiment.runs.counted(0).peekable();
        baseline.peek()?;
        if !candidates.all(found_no_sync) || !baseline.all(|run| is_without_syncs(&run.run)) {
            return None;
        }
        match &experiment.variants[0].witness {
            Some(Testimony::Seen(seen)) if seen.calls > 0 => None,
            Some(Testimony::Seen(seen)) if seen.lost == 0 => Some(NeverSyncs::ByTheKernel),
            _ => Some(NeverSyncs::ByRefit),
        }
    }
}

fn found_no_sync(variant: &VariantRecord) -> bool {
    let is_about_syncs = |one: &SettingRecord| ["sync", "disk"].contains(&one.setting.knob().name);
    let is_nowhere = |one: &SettingRecord| matches!(one.in_effect, Some(InEffect::Nowhere(_)));
    variant.disqualified.is_some()
        && !variant.settings.is_empty()
        && (variant.settings.iter()).all(|one| is_about_syncs(one) && is_nowhere(one))
}

fn is_without_syncs(run: &Run) -> bool {
    let coverage = &run.coverage;
    let reached_all = coverage.processes_seen > 0
        && coverage.processes_reached >= coverage.processes_seen
        && coverage.unknown.is_empty()
        && run.survivors.is_empty();
    let opens = run.totals.get(OPEN_SYNC).map_or(0, |calls| calls.seen);
    reached_all && opens == 0 && run.syncs(|calls| calls.seen) == 0
}
