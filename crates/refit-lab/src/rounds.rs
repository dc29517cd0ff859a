//! The rounds of a comparison: every variant once in random order, then the mirror
//! image, until there is enough.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use refit_recipe::Recipe;
use refit_run::machine_load::MachineLoad;
use refit_run::{fingerprint, interruptions};
use refit_stats::{LookPlan, OVERALL_ALPHA, Schedule};

use crate::comparison::Comparison;
use crate::comparison::command_runner::CommandRunner;
use crate::comparison::recipe_runner::RecipeRunner;
use crate::comparison::runner::{Made, Runs};
use crate::effects::Effects;
use crate::error::LabError;
use crate::experiment::{
    Environment, Experiment, INCOMPLETE, PlanRecord, Role, RunRecord, SCHEMA, Samples,
    VariantRecord,
};
use crate::in_effect;
use crate::length::{Length, typical_pair};
use crate::request::Request;
use crate::variants::{Variants, setting_records};
use crate::warnings::Warning;
use crate::witness_runs;

/// A variant that failed this often is disqualified.
const MOST_FAILURES: usize = 3;
/// Live estimates are made at most this often: they cost time between runs.
const ESTIMATES_EVERY: Duration = Duration::from_millis(300);
/// … and the time between two of them is at least this many times what one takes.
const ESTIMATES_SHARE: u32 = 20;

/// Receives the progress of a comparison.
pub trait Progress {
    /// Before anything runs.
    fn begins(&mut self, experiment: &Experiment);
    /// The plan, after the warm-up: how long it will take at most.
    fn planned(&mut self, experiment: &Experiment, longest: Duration);
    /// A run starts.
    fn runs(&mut self, experiment: &Experiment, variant: usize);
    /// A round pair is complete; the effects are current.
    fn pair_done(&mut self, comparison: &Comparison);
}

/// An experiment that is being made.
pub struct Rounds<'a> {
    request: &'a Request,
    runner: Box<dyn Runs + 'a>,
    experiment: Experiment,
    length: Length<'a>,
    began: Instant,
    load_before: MachineLoad,
    /// How often each variant failed.
    failures: BTreeMap<usize, usize>,
    /// What the last run of each variant took, with what came before and after it.
    took: BTreeMap<usize, Duration>,
    /// The budget was used up in the middle of a round pair.
    is_late: bool,
}

/// Where in the experiment a run stands.
struct At {
    variant: usize,
    pair: usize,
    round: usize,
    slot: usize,
    at_s: f64,
}

/// Live estimates, made no more often than they may cost.
struct Estimates {
    effects: Effects,
    made: Instant,
    pause: Duration,
    least: Duration,
}

impl<'a> Rounds<'a> {
    /// Prepares every variant; nothing has run yet.
    ///
    /// # Errors
    /// What is missing, or excludes another setting.
    pub fn new(request: &'a Request, is_confirmation: bool) -> Result<Self, LabError> {
        if let Some(missing) = request
            .recipe
            .as_ref()
            .and_then(|recipe| recipe.missing("compare"))
        {
            return Err(LabError::Missing(missing));
        }
        let Variants { records, settings } = Variants::compared(request);
        let experiment = planned(request, records);
        for gate in &request.gates {
            gate.check(&experiment)?;
        }
        let variants = &experiment.variants;
        let runner: Box<dyn Runs + 'a> = match &request.recipe {
            Some(recipe) => Box::new(RecipeRunner::new(
                request, recipe, &settings, variants, false,
            )?),
            None => Box::new(CommandRunner::new(request, &settings, variants)?),
        };
        Ok(Rounds {
            load_before: MachineLoad::now(runner.children_ns()),
            runner,
            request,
            experiment,
            length: Length::new(request, is_confirmation),
            began: Instant::now(),
            failures: BTreeMap::new(),
            took: BTreeMap::new(),
            is_late: false,
        })
    }

    /// Makes the runs. What fails after a run that counts ends the comparison, and is
    /// kept with what was measured.
    ///
    /// # Errors
    /// What ends the whole comparison before anything was measured.
    pub fn run(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        let made = if self.experiment.is_exact() {
            self.answer(progress)
        } else {
            self.compare(progress)
        };
        self.count_what_there_is();
        match made {
            Err(error) if self.outlasts(&error) => {
                self.experiment.failed = Some(error.to_string());
                Ok(())
            }
            made => made,
        }
    }

    /// Whether what was measured is worth something in spite of this error. A baseline
    /// that fails before a single round pair is complete is none.
    fn outlasts(&self, error: &LabError) -> bool {
        let any = self.experiment.runs.counted(0).next().is_some();
        let is_baseline = matches!(error, LabError::Baseline { .. });
        any && (!is_baseline || self.experiment.plan.pairs > 0)
    }

    fn compare(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        // One more for the warm-up.
        self.check_room(self.length.fewest_pairs() + 1)?;
        progress.begins(&self.experiment);
        let mut estimates = Estimates::new(self.request);
        let mut schedule = Schedule::new(self.request.seed, self.experiment.variants.len())
            .map(|pair| pair.rounds())
            .enumerate();
        let Some((index, rounds)) = schedule.next() else {
            return Ok(());
        };
        let Some(plan) = self.warm_up(index, rounds, progress)? else {
            return Ok(());
        };
        for (index, rounds) in schedule {
            if self.is_over() {
                break;
            }
            let began = Instant::now();
            self.pair(index, rounds, progress)?;
            self.length.pair_took(began.elapsed());
            self.experiment.plan.pairs = self.experiment.runs.complete_pairs();
            let is_look = plan.look_after(self.experiment.plan.pairs).is_some();
            if is_look || estimates.are_due() {
                estimates.make(self, progress);
            }
            if self.has_enough(&plan, &estimates.effects) {
                break;
            }
        }
        Ok(())
    }

    /// One round pair and no warm-up: two runs are enough to see that answers repeat.
    fn answer(&mut self, progress: &mut dyn Progress) -> Result<(), LabError> {
        self.check_room(1)?;
        progress.begins(&self.experiment);
        let mut schedule = Schedule::new(self.request.seed, self.experiment.variants.len());
        if let Some(pair) = schedule.next() {
            self.pair(1, pair.rounds(), progress)?;
        }
        self.experiment.plan.pairs = self.experiment.runs.complete_pairs();
        Ok(())
    }

    /// The first round pair, which does not count, and the plan that is made from what
    /// it took. `None` where nothing is left to run; then it is what was measured.
    fn warm_up(
        &mut self,
        index: usize,
        rounds: [Vec<usize>; 2],
        progress: &mut dyn Progress,
    ) -> Result<Option<LookPlan>, LabError> {
        let began = Instant::now();
        self.pair(index, rounds, progress)?;
        in_effect::record_what_was_in_effect(&mut self.experiment);
        // What was not run to its end does not show how long the rest takes.
        if self.experiment.interrupted || self.is_late {
            return Ok(None);
        }
        let pair = typical_pair(&self.experiment, began.elapsed());
        let plan = self.length.plan(&self.experiment, pair);
        let most = plan.looks.last().copied().unwrap_or_default();
        self.check_room(most)?;
        self.experiment.plan.looks.clone_from(&plan.looks);
        self.experiment.plan.alpha = plan.levels.ranks;
        self.experiment.plan.early_alpha = plan.levels.early;
        if most == 0 {
            // There is no time for another round pair.
            return Ok(None);
        }
        let longest = pair * u32::try_from(most).unwrap_or(u32::MAX);
        progress.planned(&self.experiment, longest);
        Ok(Some(plan))
    }

    /// Without another round pair the warm-up is what was measured, or the runs of a
    /// round pair that was not completed.
    fn count_what_there_is(&mut self) {
        let Experiment { runs, plan, .. } = &mut self.experiment;
        if runs.complete_pairs() > 0 {
            return;
        }
        runs.count_warmup();
        plan.pairs = runs.complete_pairs();
        if plan.pairs == 0 {
            runs.count_incomplete();
        }
        if plan.looks.iter().all(|look| *look == 0) {
            plan.looks = vec![1];
        }
    }

    fn check_room(&self, pairs: usize) -> Result<(), LabError> {
        self.runner
            .check_room(2 * pairs * self.experiment.variants.len())
    }

    /// Whether nothing is left to be compared, or the user wants no more runs.
    fn is_over(&self) -> bool {
        let none_left = self.experiment.candidates().next().is_none();
        self.experiment.interrupted
            || self.is_late
            || !self.length.has_time_for_pair()
            || (none_left && !self.request.candidates.is_empty())
    }

    fn has_enough(&mut self, plan: &LookPlan, effects: &Effects) -> bool {
        if self.length.is_precise(&self.experiment, effects) {
            return true;
        }
        if let Some(look) = plan.look_after(self.experiment.plan.pairs) {
            self.experiment.plan.look = look;
        }
        self.length.is_enough(plan, &self.experiment, effects)
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
        let made = self.both_rounds(pair, &rounds, progress);
        self.experiment.interrupted |= interruptions() > 0;
        let runs = &mut self.experiment.runs[first..];
        // A disqualified variant costs the others nothing more.
        let variants = &self.experiment.variants;
        let costs =
            |run: &RunRecord| run.failure.is_some() && variants[run.variant].disqualified.is_none();
        let reason = if !matches!(made, Ok(true)) {
            INCOMPLETE
        } else if runs.iter().any(costs) {
            "another run of its round pair failed"
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
            Some(reason) => self.failed(at.variant, &reason, made.at_once),
            None => Ok(()),
        }
    }

    /// Disqualifies a variant that failed too often. Without a baseline the comparison
    /// ends.
    fn failed(&mut self, variant: usize, reason: &str, at_once: bool) -> Result<(), LabError> {
        let failures = self.failures.entry(variant).or_default();
        *failures += 1;
        let failures = *failures;
        if interruptions() > 1 {
            return Ok(());
        }
        let role = self.experiment.variants[variant].role;
        let is_baseline = matches!(role, Role::Baseline | Role::Hidden);
        let is_last = at_once || failures >= MOST_FAILURES || self.experiment.is_exact();
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

    /// One more run of each variant that is about syncs, not measured.
    pub fn call_witness(&mut self, progress: &mut dyn Progress) {
        let mut starts = |experiment: &Experiment, variant| progress.runs(experiment, variant);
        witness_runs::call_witness(&mut self.experiment, &mut *self.runner, &mut starts);
    }

    /// What the experiment shows, and the runner, which deletes what the runs left on
    /// disks when it is dropped.
    pub fn conclude(mut self) -> (Comparison, Box<dyn Runs + 'a>) {
        let now = MachineLoad::now(self.runner.children_ns());
        self.experiment.environment.after = fingerprint::changing();
        self.experiment.plan.took_s = self.began.elapsed().as_secs_f64();
        let others = now.others_since(self.load_before);
        in_effect::record_what_was_in_effect(&mut self.experiment);
        let mut comparison = Comparison::new(self.experiment, &self.request.gates, others);
        comparison.warnings.extend(self.runner.warnings());
        let trouble = match self.runner.end() {
            Ok(trouble) => trouble,
            Err(error) => Some(error.to_string()),
        };
        comparison.warnings.extend(trouble.map(|text| Warning {
            text: format!("after the last run {text}"),
            action: "look at the service's log, and repeat it".to_owned(),
        }));
        (comparison, self.runner)
    }
}

impl Estimates {
    fn new(request: &Request) -> Estimates {
        // A wanted precision is checked as often as it may cost.
        let least = match request.precision {
            Some(_) => Duration::ZERO,
            None => ESTIMATES_EVERY,
        };
        Estimates {
            effects: Effects::default(),
            made: Instant::now(),
            pause: least,
            least,
        }
    }

    fn are_due(&self) -> bool {
        self.made.elapsed() > self.pause
    }

    /// Of the metrics on which the end depends.
    fn make(&mut self, rounds: &mut Rounds, progress: &mut dyn Progress) {
        let began = Instant::now();
        let experiment = &mut rounds.experiment;
        experiment.plan.took_s = rounds.began.elapsed().as_secs_f64();
        self.effects = Effects::of_metrics(experiment, |name| {
            rounds.length.depends_on(experiment, name)
        });
        let comparison = Comparison::unfinished(experiment.clone(), self.effects.clone());
        progress.pair_done(&comparison);
        self.made = Instant::now();
        self.pause = self.least.max(began.elapsed() * ESTIMATES_SHARE);
    }
}

/// The experiment before its first run.
fn planned(request: &Request, variants: Vec<VariantRecord>) -> Experiment {
    let recipe = request.recipe.as_ref();
    let directory = match recipe {
        Some(_) => request.dir.clone(),
        None => std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
    };
    let started = SystemTime::UNIX_EPOCH.elapsed();
    Experiment {
        schema: SCHEMA,
        kind: "compare".to_owned(),
        refit: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix: started.map_or(0, |since| since.as_secs()),
        command: match recipe {
            Some(recipe) => vec![recipe.name().to_owned()],
            None => words(&request.command),
        },
        input: request
            .input
            .as_ref()
            .map(|path| path.display().to_string()),
        main: recipe.map_or("wall", Recipe::main).to_owned(),
        recipe: recipe.map(Recipe::record),
        unavailable: request.unavailable.clone(),
        with: setting_records(&request.with, recipe),
        seed: request.seed,
        delta: request.delta,
        plan: PlanRecord {
            alpha: OVERALL_ALPHA,
            budget_s: request.budget.as_secs_f64(),
            ..PlanRecord::default()
        },
        environment: Environment {
            fixed: fingerprint::fixed(&directory),
            before: fingerprint::changing(),
            after: BTreeMap::new(),
        },
        variants,
        runs: Samples::default(),
        interrupted: false,
        failed: None,
    }
}

fn words(command: &[OsString]) -> Vec<String> {
    let words = command.iter().map(|word| word.to_string_lossy());
    words.map(std::borrow::Cow::into_owned).collect()
}
