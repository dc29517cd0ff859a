//! One more run of each variant that is about syncs, with the kernel as witness. What
//! the witness costs is in no run that is measured.

use std::collections::BTreeMap;

use refit_run::{Run, Testimony, Witness, interruptions};

use crate::comparison::runner::Runs;
use crate::experiment::{Experiment, SettingRecord, VariantRecord};
use crate::in_effect::is_nowhere;

/// Makes these runs, and keeps what the witness counted with the variants; returns the runs, by variant. Nothing
/// that fails here takes away what was measured before. `starts` is called before
/// each run.
pub fn call_witness(
    experiment: &mut Experiment,
    runner: &mut dyn Runs,
    starts: &mut dyn FnMut(&Experiment, usize),
) -> BTreeMap<usize, Run> {
    let mut runs = BTreeMap::new();
    let variants = witnessed(experiment);
    if variants.is_empty() || experiment.interrupted || experiment.failed.is_some() {
        return runs;
    }
    // Without a witness these runs would show nothing.
    let unavailable = Witness::begin().map(drop).err();
    runner.call_witness();
    for variant in variants {
        if interruptions() > 0 {
            break;
        }
        // Of a command that never syncs nothing can reach the disk.
        if is_nowhere(&experiment.variants[variant]) && never_syncs(experiment) {
            continue;
        }
        let testimony = match &unavailable {
            Some(reason) => Testimony::Unavailable(reason.clone()),
            None => {
                starts(experiment, variant);
                let name = &experiment.variants[variant].name;
                match run(name, variant, runner) {
                    Err(reason) => Testimony::Unavailable(reason),
                    Ok((testimony, run)) => {
                        runs.insert(variant, run);
                        testimony
                    }
                }
            }
        };
        experiment.variants[variant].witness = Some(testimony);
    }
    runs
}

/// The candidates that swap syncs, and the baseline with them: where the baseline
/// never synced, a candidate without syncs proves nothing. Last those that seem to be nowhere in effect.
pub fn witnessed(experiment: &Experiment) -> Vec<usize> {
    // The witness cannot tell the runs of one server apart, and sees this machine only.
    let keeps_service = experiment.recipe.as_ref().is_some_and(|r| r.keeps_service);
    if keeps_service || experiment.is_elsewhere() {
        return Vec::new();
    }
    let about_syncs =
        |settings: &[SettingRecord]| settings.iter().any(SettingRecord::is_about_syncs);
    let all = about_syncs(&experiment.with);
    let of = |is_it: fn(&VariantRecord) -> bool| {
        let variants = experiment.variants.iter().enumerate();
        variants
            .filter(move |(_, variant)| is_it(variant))
            .filter(|(_, variant)| all || about_syncs(&variant.settings))
            .map(|(index, _)| index)
    };
    let candidates = of(VariantRecord::is_candidate).chain(of(is_nowhere));
    let mut variants = experiment.variants.iter();
    match variants.any(|one| about_syncs(&one.settings)) || all {
        true => [0].into_iter().chain(candidates).collect(),
        false => Vec::new(),
    }
}

/// Whether the kernel saw no durable call of the baseline.
fn never_syncs(experiment: &Experiment) -> bool {
    let baseline = &experiment.variants[0].witness;
    matches!(baseline, Some(Testimony::Seen(seen)) if seen.calls == 0 && seen.lost == 0)
}

fn run(name: &str, variant: usize, runner: &mut dyn Runs) -> Result<(Testimony, Run), String> {
    let failed = |reason: String| format!("the run of {name} failed: {reason}");
    let made = runner
        .run(variant)
        .map_err(|error| failed(error.to_string()))?;
    match (made.failure, made.run.witness.clone()) {
        (None, Some(testimony)) => Ok((testimony, made.run)),
        (Some(reason), _) => Err(failed(reason)),
        (None, None) => Err(failed("it was not started".to_owned())),
    }
}
