//! How many round pairs, and after which of them it is looked.

use std::time::Duration;

use refit_stats::{DEFAULT_LOOKS, LookPlan, OVERALL_ALPHA, plan_looks};

use super::Comparison;
use super::confirmation::PAIRS_OF_CONFIRMATION;
use crate::error::LabError;
use crate::experiment::RunRecord;

/// A run longer than this gets the shortest plan that can speak.
const LONG_RUN: Duration = Duration::from_secs(20);
/// Never more round pairs than this: the exact distribution of more takes longer
/// than it is worth.
pub const MOST_PAIRS: usize = 1000;
/// Of the time that is left the plan uses this much, so that its last look comes
/// before the end.
const USABLE: f64 = 0.95;

impl Comparison<'_> {
    /// What later round pairs will take, from a warm-up that took `whole`: twice
    /// its faster round, since a stall of something else is no rule, without
    /// those who take no part any more.
    pub(super) fn typical_pair(&self, whole: Duration) -> Duration {
        let runs = &self.experiment.runs;
        let begins = |round| {
            runs.iter()
                .find(|run| run.round == round)
                .map(|run| run.at_s)
        };
        let first = begins(1)
            .zip(begins(0))
            .map_or(0.0, |(second, first)| second - first);
        let rounds = [first, whole.as_secs_f64() - first];
        let out = |run: &&RunRecord| self.experiment.variants[run.variant].disqualified.is_some();
        let without = |round: usize| {
            let lost = runs.iter().filter(|run| run.round == round).filter(out);
            let lost: u64 = lost.map(|run| run.run.metrics.wall_ns).sum();
            (rounds[round] - lost as f64 / 1e9).max(0.0)
        };
        let faster = without(0).min(without(1));
        let usual = if faster > 0.0 {
            2.0 * faster
        } else {
            without(0) + without(1)
        };
        Duration::from_secs_f64(usual)
    }

    /// Whether as many rounds as were asked for can earn a verdict, and whether
    /// the fewest that can find room: said before anything runs.
    pub(super) fn check_rounds(&self) -> Result<(), LabError> {
        let needed = LookPlan::shortest(self.request.candidates.len().max(1)).looks[0];
        match self.request.rounds.map(|rounds| rounds / 2) {
            Some(pairs) if pairs < needed && !self.single_look => {
                Err(too_few_rounds(pairs, needed))
            }
            // One more for the warm-up.
            _ => self
                .runner
                .check_room(2 * (needed + 1) * self.experiment.variants.len()),
        }
    }

    /// How many round pairs, from what the warm-up took. A plan of no round pairs
    /// says that the warm-up has to serve as the measurement.
    pub(super) fn plan(&self, pair: Duration) -> Result<LookPlan, LabError> {
        let candidates = self.candidates_left().max(1);
        if self.single_look {
            return Ok(LookPlan {
                looks: vec![PAIRS_OF_CONFIRMATION],
                alpha: OVERALL_ALPHA,
            });
        }
        let left = self.request.budget.saturating_sub(self.began.elapsed());
        let in_budget = (USABLE * left.as_secs_f64() / pair.as_secs_f64().max(1e-6)) as usize;
        let asked = self.request.rounds.map(|rounds| rounds / 2);
        let most = asked.unwrap_or(MOST_PAIRS).min(MOST_PAIRS);
        let pairs = most.min(in_budget);
        let runs = u32::try_from(2 * self.experiment.variants.len()).unwrap_or(u32::MAX);
        let plan = if pair / runs > LONG_RUN {
            let shortest = LookPlan::shortest(candidates);
            let needed = shortest.looks[0];
            if needed <= pairs {
                Ok(shortest)
            } else {
                Err(needed)
            }
        } else {
            plan_looks(pairs, candidates, DEFAULT_LOOKS).map_err(|error| error.needed)
        };
        let plan = match plan {
            Ok(plan) => plan,
            // What the time allows is measured and shown. It earns no verdict,
            // and the report names the time that would.
            Err(_) if in_budget < most => LookPlan {
                looks: vec![pairs],
                alpha: OVERALL_ALPHA / candidates as f64,
            },
            Err(needed) => return Err(too_few_rounds(pairs, needed)),
        };
        self.runner.check_room(
            2 * plan.looks.last().copied().unwrap_or_default() * self.experiment.variants.len(),
        )?;
        Ok(plan)
    }
}

fn too_few_rounds(pairs: usize, needed: usize) -> LabError {
    LabError::TooFewRounds {
        pairs,
        needed,
        rounds: 2 * needed,
    }
}
