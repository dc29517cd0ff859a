//! The winner once more: choosing the best of several inflates its number.

use std::time::Duration;

use refit_stats::Measure;

use super::{Comparison, Progress};
use crate::error::LabError;
use crate::experiment::{Experiment, Role};
use crate::request::Request;

/// Round pairs of a confirmation.
pub const PAIRS_OF_CONFIRMATION: usize = 8;

/// The winner against the baseline, with a fresh seed.
pub fn confirm(
    request: &Request,
    experiment: &Experiment,
    winner: usize,
    progress: &mut dyn Progress,
) -> Result<Experiment, LabError> {
    let again = Request {
        candidates: vec![request.candidates[winner - 1].clone()],
        seed: request.seed.wrapping_add(1),
        rounds: Some(2 * PAIRS_OF_CONFIRMATION),
        confirm: false,
        bare: false,
        unavailable: Vec::new(),
        precision: None,
        ..request.clone()
    };
    progress.pair_done(experiment);
    let mut progress = Within {
        whole: experiment.clone(),
        progress,
    };
    let mut comparison = Comparison::new(&again)?;
    comparison.single_look = true;
    comparison.run(&mut progress)?;
    Ok(comparison.conclude())
}

/// Tells of a confirmation; what is stored is always the whole.
struct Within<'a> {
    whole: Experiment,
    progress: &'a mut dyn Progress,
}

impl Progress for Within<'_> {
    fn begins(&mut self, experiment: &Experiment) {
        self.progress.begins(experiment);
    }

    fn planned(&mut self, experiment: &Experiment, longest: Duration) {
        self.progress.planned(experiment, longest);
    }

    fn runs(&mut self, experiment: &Experiment, variant: usize) {
        self.progress.runs(experiment, variant);
    }

    fn pair_done(&mut self, experiment: &Experiment) {
        self.whole.confirmation = Some(Box::new(experiment.clone()));
        self.progress.pair_done(&self.whole);
    }
}

/// The candidate that gains most, if one gains at all.
pub fn winner(experiment: &Experiment) -> Option<usize> {
    let gains = |index: &usize| {
        let variant = &experiment.variants[*index];
        let effect = experiment.effect(*index, &experiment.main);
        variant.role == Role::Candidate
            && variant.disqualified.is_none()
            && effect.is_some_and(|e| e.gain)
    };
    // As a gain: of a rate more is better.
    let is_rate = experiment.main_metric().measure == Measure::Rate;
    let change = |index: &usize| {
        let change = experiment
            .effect(*index, &experiment.main)
            .map_or(0.0, |effect| effect.change);
        if is_rate { -change } else { change }
    };
    (0..experiment.variants.len())
        .filter(gains)
        .min_by(|a, b| change(a).total_cmp(&change(b)))
}
