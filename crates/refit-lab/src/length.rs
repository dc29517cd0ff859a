//! The length of a comparison: after how many round pairs it looks for verdicts,
//! and when it ends.

use std::time::{Duration, Instant};

use refit_stats::{
    DEFAULT_LOOKS, FEWEST_PAIRS, LookPlan, MAX_PAIRS, fewest_for_ranks, pairs_needed, plan_looks,
};

use crate::effects::{EffectRecord, Effects};
use crate::experiment::{Experiment, Role, RunRecord};
use crate::gate::GateAnswer;
use crate::request::Request;
use crate::verdict::Verdict;
use crate::witness_runs::witnessed;

/// Round pairs of a confirmation.
pub const PAIRS_OF_CONFIRMATION: usize = 8;
/// Variants of a confirmation: the baseline, the winner, the hidden baseline.
const VARIANTS_OF_CONFIRMATION: usize = 3;
/// Where a run takes longer than this, there is one look after the early ones.
const LONG_RUN: Duration = Duration::from_secs(20);
/// The plan uses this share of the time that is left, so that its last look comes
/// before the end.
const USABLE: f64 = 0.95;
/// No round pair begins that would probably end after this share of the budget …
const LATEST_PAIR: f64 = 1.02;
/// … and none goes on that would end after this one: the machine became slower.
const LATEST_RUN: f64 = 1.08;
/// What comes after the rounds may take this share of the time that is left.
const MOST_RESERVED: f64 = 0.5;
/// A verdict of an early look waits for the exact interval when that is so near: it
/// costs little, and is much narrower.
const SOON: Duration = Duration::from_secs(5);
/// Round pairs below which a wanted precision does not end a comparison.
const PAIRS_FOR_PRECISION: usize = 8;

/// What decides about the length.
pub struct Length<'a> {
    request: &'a Request,
    began: Instant,
    is_confirmation: bool,
    /// What the runs after the rounds will probably take.
    reserved: Duration,
    /// The times of the last two round pairs.
    pairs: [Duration; 2],
}

impl<'a> Length<'a> {
    /// Of a comparison that begins now.
    pub fn new(request: &'a Request, is_confirmation: bool) -> Length<'a> {
        Length {
            request,
            began: Instant::now(),
            is_confirmation,
            reserved: Duration::ZERO,
            pairs: [Duration::ZERO; 2],
        }
    }

    /// The fewest round pairs that are worth the room on a disk: those of a first
    /// verdict, or what was asked for.
    pub fn fewest_pairs(&self) -> usize {
        self.asked().unwrap_or(FEWEST_PAIRS).min(FEWEST_PAIRS)
    }

    /// Round pairs that `--rounds` asks for, at least one.
    fn asked(&self) -> Option<usize> {
        self.request.rounds.map(|rounds| (rounds / 2).max(1))
    }

    /// The looks, from what a round pair takes. A plan of no round pairs means that
    /// the warm-up has to serve as the measurement; one of fewer than three earns no
    /// verdict, and shows what was measured.
    pub fn plan(&mut self, experiment: &Experiment, pair: Duration) -> LookPlan {
        self.pairs = [pair; 2];
        let candidates = experiment.candidates().count().max(1) * self.request.together.max(1);
        let runs = u32::try_from(2 * experiment.variants.len()).unwrap_or(u32::MAX);
        let run = pair / runs;
        let left = self.request.budget.saturating_sub(self.began.elapsed());
        self.reserved = (run * self.runs_after(experiment)).min(left.mul_f64(MOST_RESERVED));
        let left = left.saturating_sub(self.reserved);
        let in_budget = (USABLE * left.as_secs_f64() / pair.as_secs_f64().max(1e-6)) as usize;
        if self.is_confirmation {
            return LookPlan::once(PAIRS_OF_CONFIRMATION.min(in_budget), 1);
        }
        let pairs = self
            .asked()
            .unwrap_or(MAX_PAIRS)
            .min(MAX_PAIRS)
            .min(in_budget);
        let plan = if run > LONG_RUN {
            plan_looks(pairs.min(fewest_for_ranks(candidates)), candidates, 1)
        } else {
            plan_looks(pairs, candidates, DEFAULT_LOOKS)
        };
        plan.unwrap_or_else(|_| LookPlan::once(pairs, candidates))
    }

    /// Runs of a witness and of a confirmation.
    fn runs_after(&self, experiment: &Experiment) -> u32 {
        let confirmed = match self.request.confirm {
            // One more for its warm-up.
            true => 2 * (PAIRS_OF_CONFIRMATION + 1) * VARIANTS_OF_CONFIRMATION,
            false => 0,
        };
        u32::try_from(witnessed(experiment).len() + confirmed).unwrap_or(u32::MAX)
    }

    /// A round pair took so long.
    pub fn pair_took(&mut self, time: Duration) {
        self.pairs = [self.pairs[1], time];
    }

    /// Whether another round pair fits into the budget. The faster of the last two is
    /// what it will take: a stall in one of them need not come again.
    pub fn has_time_for_pair(&self) -> bool {
        self.fits(self.pairs[0].min(self.pairs[1]), LATEST_PAIR)
    }

    /// Whether so much more of a round pair that has begun fits into it.
    pub fn has_time_for(&self, rest: Duration) -> bool {
        self.fits(rest, LATEST_RUN)
    }

    fn fits(&self, time: Duration, latest: f64) -> bool {
        self.began.elapsed() + time + self.reserved <= self.request.budget.mul_f64(latest)
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

    /// Whether the plan is at its end, or a look settled everything.
    pub fn is_enough(&self, plan: &LookPlan, experiment: &Experiment, effects: &Effects) -> bool {
        let pairs = experiment.plan.pairs;
        let last = plan.looks.last().copied().unwrap_or_default();
        let is_look = plan.look_after(pairs).is_some();
        pairs >= last
            || (is_look
                && self.request.precision.is_none()
                && !self.is_exact_soon(plan, pairs)
                && self.is_settled(experiment, effects))
    }

    /// Whether this look is an early one, and the first exact one follows at once.
    fn is_exact_soon(&self, plan: &LookPlan, pairs: usize) -> bool {
        let exact = pairs_needed(plan.levels.ranks);
        let first = plan.looks.iter().find(|look| **look >= exact);
        first.is_some_and(|first| {
            let missing = u32::try_from(first.saturating_sub(pairs)).unwrap_or(u32::MAX);
            pairs < exact && self.pairs[1].saturating_mul(missing) <= SOON
        })
    }

    /// Every candidate has a verdict on the main metric, which says how large a difference is and is beyond the noise,
    /// and every gate has an answer.
    fn is_settled(&self, experiment: &Experiment, effects: &Effects) -> bool {
        let is_answer = |effect: &EffectRecord| {
            effect.verdict.is_some_and(|verdict| match verdict {
                Verdict::Inconclusive => false,
                Verdict::Same => true,
                _ => effect.is_sized() && !effects.is_within_noise(experiment, effect),
            })
        };
        of_candidates(experiment, effects, &experiment.main).all(is_answer)
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

/// What later round pairs will take, from a warm-up that took `whole`: twice its
/// faster round, as a stall in one of them need not come again, without the variants that were
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
