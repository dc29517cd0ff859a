//! The loop of a comparison: rounds, looks, and when it ends.

mod beginning;
pub mod check;
mod confirmation;
mod ending;
mod plan;
mod recipe_runner;
mod runner;
mod testimony;
mod times;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use refit_run::{count_interruptions, fingerprint, interruptions, machine_load::Busy};
use refit_stats::{LookPlan, Schedule};

use crate::effects::effects;
use crate::error::LabError;
use crate::experiment::{Experiment, GateRecord, Role, RunRecord, Warning};
use crate::gate::GateAnswer;
use crate::request::Request;
use crate::warnings::warnings;
use confirmation::{confirm, winner};
pub use plan::MOST_PAIRS;
use refit_recipe::Recipe;
use runner::Runs;
use times::results;

/// Failed runs after which a variant takes no part any more.
const PATIENCE: usize = 3;
/// Live estimates are made at most this often: they cost time between runs.
const ESTIMATES_EVERY: Duration = Duration::from_millis(300);
/// … and this many times rarer than one takes.
const ESTIMATES_SHARE: u32 = 20;

/// Told what goes on; draws it or does not.
pub trait Progress {
    /// Before anything runs.
    fn begins(&mut self, experiment: &Experiment);
    /// The plan, after the warm-up: how long it will take at most.
    fn planned(&mut self, experiment: &Experiment, longest: Duration);
    /// A run starts.
    fn runs(&mut self, experiment: &Experiment, variant: usize);
    /// A round pair is complete; the estimates are current.
    fn pair_done(&mut self, experiment: &Experiment);
}

/// Makes a comparison. `progress` is told after every round pair, and may store
/// the experiment.
///
/// # Errors
/// [`LabError`]. Candidates that fail are no error: they are disqualified.
pub fn compare(request: &Request, progress: &mut dyn Progress) -> Result<Experiment, LabError> {
    count_interruptions();
    let mut comparison = Comparison::new(request)?;
    comparison.run(progress)?;
    comparison.hear_witness(progress);
    let mut experiment = comparison.conclude();
    if request.confirm
        && !experiment.interrupted
        && let Some(winner) = winner(&experiment)
    {
        match confirm(request, &experiment, winner, progress) {
            Ok(again) => experiment.confirmation = Some(Box::new(again)),
            // What was measured before is not lost with it.
            Err(error) => experiment.warnings.push(Warning {
                text: format!("there is no confirmation: {error}"),
                action: "repeat the comparison".to_owned(),
            }),
        }
    }
    Ok(experiment)
}

struct Comparison<'a> {
    request: &'a Request,
    runner: Box<dyn Runs + 'a>,
    experiment: Experiment,
    began: Instant,
    /// Processor time when it began.
    busy: Busy,
    failures: BTreeMap<usize, usize>,
    single_look: bool,
}

impl Comparison<'_> {
    fn run(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        if self.is_exact() {
            return self.answer(progress);
        }
        self.check_rounds()?;
        progress.begins(&self.experiment);
        let schedule = Schedule::new(self.request.seed, self.experiment.variants.len());
        let mut plan: Option<LookPlan> = None;
        let mut estimated = Instant::now();
        // A wanted precision is looked for as often as it may cost.
        let least = match self.request.precision {
            Some(_) => Duration::ZERO,
            None => ESTIMATES_EVERY,
        };
        let mut pause = least;
        for (index, pair) in schedule.enumerate() {
            let began = Instant::now();
            self.pair(index, pair.rounds(), progress)?;
            self.experiment.interrupted |= interruptions() > 0;
            match &plan {
                // What was not run to its end says nothing of the rest.
                None if self.experiment.interrupted => {}
                None => {
                    let pair = self.typical_pair(began.elapsed());
                    let made = self.plan(pair)?;
                    let most = made.looks.last().copied().unwrap_or_default();
                    let longest = pair * u32::try_from(most).unwrap_or(u32::MAX);
                    self.experiment.plan.looks.clone_from(&made.looks);
                    self.experiment.plan.alpha = made.alpha;
                    if most == 0 {
                        self.count_the_warm_up();
                        break;
                    }
                    progress.planned(&self.experiment, longest);
                    plan = Some(made);
                }
                Some(plan) => {
                    self.experiment.plan.pairs = self.complete_pairs();
                    let is_look = plan.look_after(self.experiment.plan.pairs).is_some();
                    if is_look || estimated.elapsed() > pause {
                        let began = Instant::now();
                        self.experiment.effects =
                            effects(&self.experiment, |name| self.decides(name));
                        self.experiment.plan.took_s = self.began.elapsed().as_secs_f64();
                        progress.pair_done(&self.experiment);
                        estimated = Instant::now();
                        pause = least.max(began.elapsed() * ESTIMATES_SHARE);
                    }
                    let plan = plan.clone();
                    if self.is_done(&plan) {
                        break;
                    }
                }
            }
            if self.candidates_left() == 0 && !self.request.candidates.is_empty() {
                break;
            }
            if self.experiment.interrupted {
                break;
            }
        }
        Ok(())
    }

    /// Where the time does not suffice for another round pair, the first is the
    /// measurement.
    fn count_the_warm_up(&mut self) {
        for run in &mut self.experiment.runs {
            run.warmup = false;
        }
        self.experiment.plan.looks = vec![1];
        self.experiment.plan.pairs = self.complete_pairs();
    }

    fn is_exact(&self) -> bool {
        let recipe = self.request.recipe.as_ref();
        recipe.is_some_and(Recipe::is_exact)
    }

    /// One round pair and no warm-up: twice is enough to see that answers repeat.
    fn answer(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        let variants = self.experiment.variants.len();
        self.runner.check_room(2 * variants)?;
        progress.begins(&self.experiment);
        let mut schedule = Schedule::new(self.request.seed, variants);
        if let Some(pair) = schedule.next() {
            self.pair(1, pair.rounds(), progress)?;
        }
        self.experiment.interrupted |= interruptions() > 0;
        self.experiment.plan.pairs = self.complete_pairs();
        Ok(())
    }

    /// One round pair. A failed run costs the whole of it.
    fn pair(
        &mut self,
        pair: usize,
        rounds: [Vec<usize>; 2],
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let first = self.experiment.runs.len();
        self.runner.next_pair();
        let is_complete = self.both_rounds(pair, &rounds, progress)?;
        let runs = &mut self.experiment.runs[first..];
        // A variant that is out costs the others nothing more.
        let variants = &self.experiment.variants;
        let costs =
            |run: &RunRecord| run.failure.is_some() && variants[run.variant].disqualified.is_none();
        let reason = if !is_complete {
            "its round pair was not completed"
        } else if runs.iter().any(costs) {
            "another run of its round pair failed"
        } else {
            return Ok(());
        };
        for run in runs.iter_mut().filter(|run| run.failure.is_none()) {
            run.failure = Some(reason.to_owned());
        }
        Ok(())
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
                if interruptions() > 1 {
                    return Ok(false);
                }
                progress.runs(&self.experiment, variant);
                let at_s = self.began.elapsed().as_secs_f64();
                let made = match self.runner.run(variant) {
                    // Ctrl-C reaches hooks by itself: they have the terminal.
                    Err(LabError::Io { .. }) if interruptions() > 0 => return Ok(false),
                    made => made?,
                };
                if let Some(load) = &made.load
                    && self.experiment.variants[variant].answers.is_empty()
                {
                    self.experiment.variants[variant]
                        .answers
                        .clone_from(&load.answers);
                }
                let record = RunRecord {
                    variant,
                    pair,
                    round,
                    slot,
                    warmup: pair == 0,
                    at_s,
                    failure: made.failure.clone(),
                    load: made.load,
                    run: made.run,
                };
                self.experiment.runs.push(record);
                if let Some(reason) = made.failure {
                    self.failed(variant, &reason, made.at_once)?;
                }
            }
        }
        Ok(interruptions() < 2)
    }

    fn failed(&mut self, variant: usize, reason: &str, at_once: bool) -> Result<(), LabError> {
        let failures = self.failures.entry(variant).or_default();
        *failures += 1;
        let failures = *failures;
        if interruptions() > 1 {
            return Ok(());
        }
        let role = self.experiment.variants[variant].role;
        let is_baseline = matches!(role, Role::Baseline | Role::Hidden);
        let is_last = at_once || failures >= PATIENCE || self.is_exact();
        if is_baseline && (is_last || self.experiment.runs.len() == 1) {
            return Err(LabError::Baseline {
                reason: reason.to_owned(),
                remedy: match &self.request.recipe {
                    Some(recipe) => format!(
                        "a comparison needs a service that works by itself: refit recipes check {}",
                        recipe.typed()
                    ),
                    None => {
                        "a comparison needs a command that succeeds by itself: refit run -- COMMAND"
                            .to_owned()
                    }
                },
            });
        }
        if is_last {
            self.experiment.variants[variant].disqualified = Some(reason.to_owned());
        }
        Ok(())
    }

    /// What came of it. Whatever the runs left on disks stays until this is
    /// dropped: deleting it would slow a confirmation.
    fn conclude(&mut self) -> Experiment {
        let others = Busy::now(self.runner.children_ns()).others_since(self.busy);
        let is_exact = self.is_exact();
        let experiment = &mut self.experiment;
        if !is_exact {
            experiment.effects = effects(experiment, |_| true);
        }
        experiment.environment.after = fingerprint::changing();
        experiment.plan.took_s = self.began.elapsed().as_secs_f64();
        for (index, variant) in experiment.variants.iter().enumerate() {
            if variant.role != Role::Candidate {
                continue;
            }
            for gate in &self.request.gates {
                let answer = match variant.disqualified {
                    Some(_) => GateAnswer::Failed,
                    None => gate.answer(experiment.effect(index, &gate.metric)),
                };
                experiment.gates.push(GateRecord {
                    gate: gate.clone(),
                    variant: index,
                    answer,
                });
            }
        }
        experiment.warnings = warnings(experiment, others);
        experiment.warnings.extend(self.runner.warnings());
        let trouble = match self.runner.end() {
            Ok(trouble) => trouble,
            Err(error) => Some(error.to_string()),
        };
        experiment.warnings.extend(trouble.map(|text| Warning {
            text: format!("behind the last run {text}"),
            action: "look at the service's log, and repeat it".to_owned(),
        }));
        experiment.results = results(experiment);
        experiment.clone()
    }
}
