//! How long a comparison goes on: after how many round pairs it looks for verdicts,
//! and when it has enough.

use std::time::{Duration, Instant};

use refit_stats::{DEFAULT_LOOKS, LookPlan, MAX_PAIRS, OVERALL_ALPHA, plan_looks};

use crate::effects::{EffectRecord, Effects};
use crate::error::LabError;
use crate::experiment::{Experiment, Role, RunRecord};
use crate::gate::GateAnswer;
use crate::request::Request;
use crate::verdict::Verdict;

/// Round pairs of a confirmation.
pub const PAIRS_OF_CONFIRMATION: usize = 8;
/// Where a run takes longer than this, the plan is the shortest that can earn a verdict.
const LONG_RUN: Duration = Duration::from_secs(20);
/// The plan uses this share of the time that is left, so that its last look comes
/// before the end.
const USABLE: f64 = 0.95;
/// Round pairs below which a wanted precision does not end a comparison.
const PAIRS_FOR_PRECISION: usize = 8;

/// What decides about the length.
pub struct Length<'a> {
    request: &'a Request,
    began: Instant,
    is_confirmation: bool,
}

impl<'a> Length<'a> {
    /// Of a comparison that begins now.
    pub fn new(request: &'a Request, is_confirmation: bool) -> Length<'a> {
        Length {
            request,
            began: Instant::now(),
            is_confirmation,
        }
    }

    /// The fewest round pairs that can earn a verdict.
    ///
    /// # Errors
    /// [`LabError::TooFewRounds`], before anything runs: fewer were asked for.
    pub fn fewest_pairs(&self) -> Result<usize, LabError> {
        let needed = LookPlan::shortest(self.request.candidates.len().max(1)).looks[0];
        match self.request.rounds.map(|rounds| rounds / 2) {
            Some(pairs) if pairs < needed && !self.is_confirmation => {
                Err(too_few_rounds(pairs, needed))
            }
            _ => Ok(needed),
        }
    }

    /// The looks, from what a round pair takes. A plan of no round pairs means that
    /// the warm-up has to serve as the measurement.
    ///
    /// # Errors
    /// [`LabError::TooFewRounds`].
    pub fn plan(&self, experiment: &Experiment, pair: Duration) -> Result<LookPlan, LabError> {
        if self.is_confirmation {
            return Ok(LookPlan {
                looks: vec![PAIRS_OF_CONFIRMATION],
                alpha: OVERALL_ALPHA,
            });
        }
        let candidates = experiment.candidates().count().max(1);
        let left = self.request.budget.saturating_sub(self.began.elapsed());
        let in_budget = (USABLE * left.as_secs_f64() / pair.as_secs_f64().max(1e-6)) as usize;
        let asked = self.request.rounds.map(|rounds| rounds / 2);
        let most = asked.unwrap_or(MAX_PAIRS).min(MAX_PAIRS);
        let pairs = most.min(in_budget);
        let runs = u32::try_from(2 * experiment.variants.len()).unwrap_or(u32::MAX);
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
        match plan {
            Ok(plan) => Ok(plan),
            // What the time allows is measured and shown. It earns no verdict, and
            // the report names the time that would.
            Err(_) if in_budget < most => Ok(LookPlan {
                looks: vec![pairs],
                alpha: OVERALL_ALPHA / candidates as f64,
            }),
            Err(needed) => Err(too_few_rounds(pairs, needed)),
        }
    }

    /// Whether the end depends on this metric.
    pub fn depends_on(&self, experiment: &Experiment, metric: &str) -> bool {
        let mut gates = self.request.gates.iter();
        metric == experiment.main || gates.any(|gate| gate.metric == metric)
    }

    /// Whether the precision that was asked for is reached.
    pub fn is_precise(&self, experiment: &Experiment, effects: &Effects) -> bool {
        let Some(precision) = self.request.precision else {
            return false;
        };
        if experiment.plan.pairs < PAIRS_FOR_PRECISION {
            return false;
        }
        let variants = experiment.variants.iter().enumerate().skip(1);
        let mut shown = variants
            .filter(|(_, variant)| variant.role != Role::Hidden && variant.disqualified.is_none());
        let is_narrow = |[low, high]: [f64; 2]| (high - low) / 2.0 <= precision;
        shown.all(|(index, _)| {
            let effect = effects.get(index, &experiment.main);
            effect
                .and_then(|effect| effect.interval)
                .is_some_and(is_narrow)
        })
    }

    /// Whether the plan or the time is at its end, or a look settled everything.
    pub fn is_enough(&self, plan: &LookPlan, experiment: &Experiment, effects: &Effects) -> bool {
        let pairs = experiment.plan.pairs;
        let last = plan.looks.last().copied().unwrap_or_default();
        let over = self.began.elapsed() > self.request.budget && !self.is_confirmation;
        let is_look = plan.look_after(pairs).is_some();
        pairs >= last
            || over
            || (is_look && self.request.precision.is_none() && self.is_settled(experiment, effects))
    }

    /// Every candidate has a verdict on the main metric, and every gate an answer.
    fn is_settled(&self, experiment: &Experiment, effects: &Effects) -> bool {
        let has_verdict = |effect: &EffectRecord| effect.verdict.is_some_and(Verdict::is_settled);
        of_candidates(experiment, effects, &experiment.main).all(has_verdict)
            && self.request.gates.iter().all(|gate| {
                of_candidates(experiment, effects, &gate.metric)
                    .all(|effect| gate.answer(Some(effect)) != GateAnswer::Undecided)
            })
    }
}

fn of_candidates<'a>(
    experiment: &'a Experiment,
    effects: &'a Effects,
    metric: &'a str,
) -> impl Iterator<Item = &'a EffectRecord> {
    experiment
        .candidates()
        .filter_map(move |(index, _)| effects.get(index, metric))
}

fn too_few_rounds(pairs: usize, needed: usize) -> LabError {
    LabError::TooFewRounds {
        pairs,
        needed,
        rounds: 2 * needed,
    }
}

/// What later round pairs will take, from a warm-up that took `whole`: twice its
/// faster round, as a stall in one of them is no rule, without the variants that were
/// disqualified.
pub fn typical_pair(experiment: &Experiment, whole: Duration) -> Duration {
    let runs = &experiment.runs;
    let begins = |round| {
        runs.iter()
            .find(|run| run.round == round)
            .map(|run| run.at_s)
    };
    let first = begins(1)
        .zip(begins(0))
        .map_or(0.0, |(second, first)| second - first);
    let rounds = [first, whole.as_secs_f64() - first];
    let out = |run: &&RunRecord| experiment.variants[run.variant].disqualified.is_some();
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
