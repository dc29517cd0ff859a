//! One round pair: every run of it, and what a failed one costs.

use std::time::Duration;

use refit_run::interruptions;

use super::{Progress, Rounds};
use crate::comparison::runner::{Blame, Made};
use crate::error::LabError;
use crate::experiment::{Disqualified, INCOMPLETE, OF_ANOTHER, Role, RunRecord};

/// A variant that failed this often is disqualified.
const MOST_FAILURES: usize = 3;

/// Where in the experiment a run stands.
struct At {
    variant: usize,
    pair: usize,
    round: usize,
    slot: usize,
    at_s: f64,
}

impl Rounds<'_> {
    /// One round pair. A failed run costs the whole of it.
    pub(super) fn pair(
        &mut self,
        pair: usize,
        rounds: [Vec<usize>; 2],
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let first = self.experiment.runs.len();
        self.runner.next_pair();
        let made = self.both_rounds(pair, &rounds, progress);
        self.experiment.interrupted |= interruptions() > 0;
        let runs = &mut self.experiment.runs.as_mut_slice()[first..];
        // A disqualified variant costs the others nothing more.
        let variants = &self.experiment.variants;
        let costs =
            |run: &RunRecord| run.failure.is_some() && variants[run.variant].disqualified.is_none();
        let reason = if !matches!(made, Ok(true)) {
            INCOMPLETE
        } else if runs.iter().any(costs) {
            OF_ANOTHER
        } else {
            return Ok(());
        };
        for run in runs.iter_mut().filter(|run| run.failure.is_none()) {
            run.failure = Some(reason.to_owned());
        }
        made.map(drop)
    }

    /// Whether every run was made.
    fn both_rounds(
        &mut self,
        pair: usize,
        rounds: &[Vec<usize>; 2],
        progress: &mut dyn Progress,
    ) -> Result<bool, LabError> {
        for (round, order) in rounds.iter().enumerate() {
            for (slot, &variant) in order.iter().enumerate() {
                if self.experiment.variants[variant].disqualified.is_some() {
                    continue;
                }
                // One run of each variant there is in any case: less would show nothing.
                let rest = self.rest(&order[slot..], &rounds[round + 1..]);
                let is_first = pair == 0 && round == 0;
                self.is_late |= !is_first && !self.length.has_time_for(rest);
                if interruptions() > 1 || self.is_late {
                    return Ok(false);
                }
                progress.runs(&self.experiment, variant);
                let at_s = self.began.elapsed().as_secs_f64();
                let made = self.runner.run(variant);
                let took = self.began.elapsed().as_secs_f64() - at_s;
                self.took.insert(variant, Duration::from_secs_f64(took));
                let made = match made {
                    // Ctrl-C reaches the hooks too: they have the terminal.
                    Err(LabError::Io { .. }) if interruptions() > 0 => return Ok(false),
                    made => made?,
                };
                let at = At {
                    variant,
                    pair,
                    round,
                    slot,
                    at_s,
                };
                self.record(at, made)?;
            }
        }
        Ok(interruptions() < 2)
    }

    /// What these runs will take, by what the last of each variant took.
    fn rest(&self, order: &[usize], mirror: &[Vec<usize>]) -> Duration {
        let runs = order.iter().chain(mirror.iter().flatten());
        let remaining =
            runs.filter(|variant| self.experiment.variants[**variant].disqualified.is_none());
        remaining.filter_map(|variant| self.took.get(variant)).sum()
    }

    fn record(&mut self, at: At, made: Made) -> Result<(), LabError> {
        let variant = &mut self.experiment.variants[at.variant];
        if let Some(load) = &made.load
            && variant.answers.is_empty()
        {
            variant.answers.clone_from(&load.answers);
        }
        self.experiment.runs.push(RunRecord {
            variant: at.variant,
            pair: at.pair,
            round: at.round,
            slot: at.slot,
            warmup: at.pair == 0,
            at_s: at.at_s,
            failure: made.failure.clone(),
            load: made.load,
            run: made.run,
        });
        match made.failure {
            Some(reason) => self.failed(at.variant, &reason, made.blame),
            None => Ok(()),
        }
    }

    /// Disqualifies a variant that failed too often. Without a baseline the comparison
    /// ends.
    fn failed(&mut self, variant: usize, reason: &str, blame: Blame) -> Result<(), LabError> {
        if blame == Blame::Nobody {
            return Ok(());
        }
        let failures = self.failures.entry(variant).or_default();
        *failures += 1;
        let failures = *failures;
        if interruptions() > 1 {
            return Ok(());
        }
        let role = self.experiment.variants[variant].role;
        let is_baseline = matches!(role, Role::Baseline | Role::Hidden);
        let at_once = blame == Blame::VariantAtOnce;
        let is_last = at_once || failures >= MOST_FAILURES || self.experiment.is_exact();
        if is_baseline && (is_last || self.experiment.runs.len() == 1) {
            return Err(LabError::baseline(reason, self.request));
        }
        if is_last {
            self.experiment.variants[variant].disqualified =
                Some(Disqualified::Failed(reason.to_owned()));
        }
        Ok(())
    }
}
