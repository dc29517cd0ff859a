//! The rounds of a comparison: every variant once in random order, then the mirror
//! image, until there is enough.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use refit_run::fingerprint;
use refit_run::machine_load::MachineLoad;
use refit_run::{Run, Survivor};
use refit_stats::{LookPlan, Schedule};

use crate::comparison::Comparison;
use crate::comparison::of_subject::runner;
use crate::comparison::runner::Runs;
use crate::effects::Effects;
use crate::error::LabError;
use crate::experiment::Experiment;
use crate::in_effect;
use crate::length::{Length, typical_pair};
use crate::memory_runs;
use crate::request::{Request, Subject};
use crate::step_class::record_step_classes;
use crate::variants::Variants;
use crate::warnings::Warning;
use crate::witness_runs;

mod live_estimates;
mod round_pair;

use live_estimates::LiveEstimates;

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
    /// Runs with the kernel as witness, by variant.
    witnessed: BTreeMap<usize, Run>,
}

impl<'a> Rounds<'a> {
    /// Prepares every variant; nothing has run yet.
    ///
    /// # Errors
    /// What is missing, or excludes another setting.
    pub fn new(request: &'a Request, is_confirmation: bool) -> Result<Self, LabError> {
        let Variants { records, settings } = Variants::compared(request);
        let experiment = Experiment::planned(request, records);
        for gate in &request.gates {
            gate.check(&experiment)?;
        }
        let runner = runner(request, &settings, &experiment.variants)?;
        Ok(Rounds {
            load_before: MachineLoad::now(runner.children_ns(), &[]),
            runner,
            request,
            experiment,
            length: Length::new(request, is_confirmation),
            began: Instant::now(),
            failures: BTreeMap::new(),
            took: BTreeMap::new(),
            is_late: false,
            witnessed: BTreeMap::new(),
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
        let mut estimates = LiveEstimates::new(self.request);
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
                self.experiment.plan.took_s = self.began.elapsed().as_secs_f64();
                record_step_classes(&mut self.experiment);
                estimates.make(&self.experiment, &self.length, |comparison| {
                    progress.pair_done(comparison);
                });
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
        in_effect::record_what_was_in_effect(&mut self.experiment, &self.witnessed);
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

    /// One more run of each variant that is about syncs, not measured.
    pub fn call_witness(&mut self, progress: &mut dyn Progress) {
        let mut starts = |experiment: &Experiment, variant| progress.runs(experiment, variant);
        self.witnessed =
            witness_runs::call_witness(&mut self.experiment, &mut *self.runner, &mut starts);
    }

    /// One more run of each variant that tells why its memory is what it is, where that is asked; not measured.
    pub fn explain_memory(&mut self, progress: &mut dyn Progress) {
        if let Subject::Recipe(subject) = &self.request.subject
            && subject.explain_memory
        {
            let mut starts = |experiment: &Experiment, variant| progress.runs(experiment, variant);
            memory_runs::explain(&mut self.experiment, &mut *self.runner, &mut starts);
        }
    }

    /// What the experiment shows, and the runner, which deletes what the runs left on
    /// disks when it is dropped.
    pub fn conclude(mut self) -> (Comparison, Box<dyn Runs + 'a>) {
        let runs = self.experiment.runs.iter();
        let left: Vec<Survivor> = runs.flat_map(|run| run.run.survivors.clone()).collect();
        let now = MachineLoad::now(self.runner.children_ns(), &left);
        let is_elsewhere = self.experiment.is_elsewhere();
        if !is_elsewhere {
            self.experiment.environment.after = fingerprint::changing();
        }
        self.experiment.plan.took_s = self.began.elapsed().as_secs_f64();
        let others = match is_elsewhere {
            true => 0.0,
            false => now.others_since(self.load_before),
        };
        in_effect::record_what_was_in_effect(&mut self.experiment, &self.witnessed);
        record_step_classes(&mut self.experiment);
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
