//! One more run of each variant that is about syncs, with the kernel as witness:
//! what it costs may not be in what is measured.

use refit_run::{Testimony, Witness, interruptions};

use super::{Comparison, Progress};
use crate::experiment::{Role, SettingRecord};

fn about_syncs(settings: &[SettingRecord]) -> bool {
    settings.iter().any(|one| one.is_about_syncs())
}

impl Comparison<'_> {
    /// The candidates that the witness has something to say of, and the baseline
    /// with them: what never synced says nothing by not syncing.
    fn heard(&self) -> Vec<usize> {
        let variants = &self.experiment.variants;
        let all = about_syncs(&self.experiment.with);
        let candidates = variants.iter().enumerate().filter(|(_, variant)| {
            variant.role == Role::Candidate
                && variant.disqualified.is_none()
                && (all || about_syncs(&variant.settings))
        });
        // One server is one witness: it cannot tell the runs apart.
        let kept = self.experiment.recipe.as_ref().is_some_and(|r| r.is_kept);
        let candidates = candidates.filter(|_| !kept);
        let candidates: Vec<usize> = candidates.map(|(index, _)| index).collect();
        if candidates.is_empty() {
            return candidates;
        }
        [0].into_iter().chain(candidates).collect()
    }

    /// Nothing that fails here takes away what was measured before.
    pub(super) fn hear_witness(&mut self, progress: &mut dyn Progress) {
        let variants = self.heard();
        if variants.is_empty() || self.experiment.interrupted {
            return;
        }
        // Without one the runs would be for nothing.
        let unavailable = Witness::begin().map(drop).err();
        self.runner.call_witness();
        for variant in variants {
            if interruptions() > 0 {
                return;
            }
            let heard = match &unavailable {
                Some(reason) => Testimony::Unavailable(reason.clone()),
                None => {
                    progress.runs(&self.experiment, variant);
                    self.testimony(variant)
                }
            };
            self.experiment.variants[variant].witness = Some(heard);
        }
    }

    fn testimony(&mut self, variant: usize) -> Testimony {
        let name = self.experiment.variants[variant].name.clone();
        let none =
            |reason: String| Testimony::Unavailable(format!("the run of {name} failed: {reason}"));
        match self.runner.run(variant) {
            Err(error) => none(error.to_string()),
            Ok(made) => match (made.failure, made.run.witness) {
                (None, Some(testimony)) => testimony,
                (Some(reason), _) => none(reason),
                (None, None) => none("it was not started".to_owned()),
            },
        }
    }
}
