//! Makes a comparison: the rounds, the runs with a witness, and the winner once more.

use std::time::Instant;

use refit_run::count_interruptions;

use crate::comparison::Comparison;
use crate::comparison::runner::Runs;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::length::PAIRS_OF_CONFIRMATION;
use crate::request::Request;
use crate::rounds::{Progress, Rounds};
use crate::warnings::Warning;

/// What the runs left on disks. It is deleted when this is dropped, which can take
/// longer than a run: print first.
pub struct Remains<'a> {
    _runner: Box<dyn Runs + 'a>,
}

/// Makes a comparison. `progress` is called after every round pair, and may store
/// what there is.
///
/// # Errors
/// [`LabError`]. A candidate that fails is not an error: it is disqualified.
pub fn compare<'a>(
    request: &'a Request,
    progress: &mut dyn Progress,
) -> Result<(Comparison, Remains<'a>), LabError> {
    count_interruptions();
    let began = Instant::now();
    let mut rounds = Rounds::new(request, false)?;
    rounds.run(progress)?;
    rounds.call_witness(progress);
    rounds.explain_memory(progress);
    // What the runs left on disks stays until the end: deleting it would slow a
    // confirmation.
    let (mut comparison, runner) = rounds.conclude();
    if request.confirm
        && !comparison.experiment.interrupted
        && comparison.experiment.failed.is_none()
        && let Some(winner) = comparison.winner()
    {
        match confirm(request, &comparison, winner, began, progress) {
            Ok(again) => comparison.confirmation = Some(Box::new(again)),
            // What was measured before is not lost with it.
            Err(error) => comparison.warnings.push(Warning {
                text: format!("there is no confirmation: {error}"),
                action: "repeat the comparison".to_owned(),
            }),
        }
    }
    Ok((comparison, Remains { _runner: runner }))
}

/// The winner against the baseline once more, with a fresh seed: choosing the best of
/// several inflates its number.
fn confirm(
    request: &Request,
    comparison: &Comparison,
    winner: usize,
    began: Instant,
    progress: &mut dyn Progress,
) -> Result<Comparison, LabError> {
    let again = Request {
        candidates: vec![request.candidates[winner - 1].clone()],
        seed: request.seed.wrapping_add(1),
        budget: request.budget.saturating_sub(began.elapsed()),
        rounds: Some(2 * PAIRS_OF_CONFIRMATION),
        confirm: false,
        bare: false,
        unavailable: Vec::new(),
        precision: None,
        ..request.clone()
    };
    progress.pair_done(comparison);
    let mut progress = Within {
        whole: comparison.clone(),
        progress,
    };
    let mut rounds = Rounds::new(&again, true)?;
    rounds.run(&mut progress)?;
    Ok(rounds.conclude().0)
}

/// Reports the progress of a confirmation; what is stored is always the whole.
struct Within<'a> {
    whole: Comparison,
    progress: &'a mut dyn Progress,
}

impl Progress for Within<'_> {
    fn begins(&mut self, experiment: &Experiment) {
        self.progress.begins(experiment);
    }

    fn planned(&mut self, experiment: &Experiment, longest: std::time::Duration) {
        self.progress.planned(experiment, longest);
    }

    fn runs(&mut self, experiment: &Experiment, variant: usize) {
        self.progress.runs(experiment, variant);
    }

    fn pair_done(&mut self, comparison: &Comparison) {
        self.whole.confirmation = Some(Box::new(comparison.clone()));
        self.progress.pair_done(&self.whole);
    }
}
