//! One more run of each variant that is about syncs, with the kernel as witness. What
//! the witness costs is in no run that is measured.

use refit_run::{Testimony, Witness, interruptions};

use crate::comparison::runner::Runs;
use crate::experiment::{Experiment, SettingRecord};

/// Makes these runs, and keeps what the witness counted with the variants. Nothing
/// that fails here takes away what was measured before. `starts` is called before
/// each run.
pub fn call_witness(
    experiment: &mut Experiment,
    runner: &mut dyn Runs,
    starts: &mut dyn FnMut(&Experiment, usize),
) {
    let variants = witnessed(experiment);
    if variants.is_empty() || experiment.interrupted || experiment.failed.is_some() {
        return;
    }
    // Without a witness these runs would show nothing.
    let unavailable = Witness::begin().map(drop).err();
    runner.call_witness();
    for variant in variants {
        if interruptions() > 0 {
            return;
        }
        let testimony = match &unavailable {
            Some(reason) => Testimony::Unavailable(reason.clone()),
            None => {
                starts(experiment, variant);
                testimony(&experiment.variants[variant].name, variant, runner)
            }
        };
        experiment.variants[variant].witness = Some(testimony);
    }
}

/// The candidates that swap syncs, and the baseline with them: where the baseline
/// never synced, a candidate without syncs proves nothing. Where all of these candidates were
/// disqualified, the baseline alone tells whether there was anything to swap.
pub fn witnessed(experiment: &Experiment) -> Vec<usize> {
    // The witness cannot tell the runs of one server apart, and sees this machine only.
    let keeps_service = experiment.recipe.as_ref().is_some_and(|r| r.keeps_service);
    if keeps_service || experiment.is_elsewhere() {
        return Vec::new();
    }
    let about_syncs =
        |settings: &[SettingRecord]| settings.iter().any(SettingRecord::is_about_syncs);
    let all = about_syncs(&experiment.with);
    let candidates = experiment.candidates();
    let candidates = candidates.filter(|(_, variant)| all || about_syncs(&variant.settings));
    let candidates = candidates.map(|(index, _)| index);
    match experiment
        .variants
        .iter()
        .any(|one| about_syncs(&one.settings))
        || all
    {
        true => [0].into_iter().chain(candidates).collect(),
        false => Vec::new(),
    }
}

fn testimony(name: &str, variant: usize, runner: &mut dyn Runs) -> Testimony {
    let none =
        |reason: String| Testimony::Unavailable(format!("the run of {name} failed: {reason}"));
    match runner.run(variant) {
        Err(error) => none(error.to_string()),
        Ok(made) => match (made.failure, made.run.witness) {
            (None, Some(testimony)) => testimony,
            (Some(reason), _) => none(reason),
            (None, None) => none("it was not started".to_owned()),
        },
    }
}
