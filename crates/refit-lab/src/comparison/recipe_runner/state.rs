//! What the runs of a recipe share, and the steps that every kind of run makes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use refit_knobs::Launch;
use refit_recipe::{
    Hook, Instance, InstanceDirectory, Recipe, Service, Work, answers, read_metrics,
    read_operations,
};
use refit_run::{Options, Prepared, Watch, interruptions, prepare};
use refit_stats::Rng;

use super::phase::{Phase, RunError, failed, out};
use crate::comparison::runner::disk_seed;
use crate::error::LabError;
use crate::experiment::{AnswerRecord, LoadRecord, Role};
use crate::request::{RecipeSubject, Request};
use crate::writeback::Writeback;

/// Runs variants of a recipe.
pub struct RecipeRunner<'a> {
    pub(super) request: &'a Request,
    pub(super) subject: &'a RecipeSubject,
    pub(super) recipe: &'a Recipe,
    pub(super) launches: Vec<(Launch, Role)>,
    /// How programs are started: the same for every run.
    pub(super) options: Options,
    pub(super) directory: InstanceDirectory,
    pub(super) environment_bytes: usize,
    pub(super) padding: usize,
    pub(super) rng: Rng,
    /// Seeds of the times of an open loop's requests: the same for both rounds of a pair and all variants.
    pub(super) schedules: Rng,
    pub(super) schedule_seed: u64,
    pub(super) writeback: Writeback,
    pub(super) unsettled: usize,
    /// How many programs were prepared so far.
    pub(super) prepared: Cell<u32>,
    /// What the baseline's check printed.
    pub(super) expected_outcome: Option<String>,
    /// Of the largest instance so far.
    pub(super) instance_bytes: u64,
    pub(super) witness: bool,
    /// The runs tell why memory is what it is.
    pub(super) explains: bool,
    pub(super) brief: bool,
    /// What each variant answered, the hidden baseline as the baseline.
    pub(super) answers: BTreeMap<usize, Vec<AnswerRecord>>,
    /// The one service of all runs, where the recipe has `service.keep`.
    pub(super) long_lived: Option<LongLived>,
}

/// A service, and what looks at it.
pub struct Watched {
    pub service: Service,
    pub watch: Watch,
    pub prepared: Prepared,
    /// Memory of the machine before it.
    pub available: Option<u64>,
}

/// A service between two runs.
pub struct LongLived {
    pub instance: Instance,
    pub watched: Watched,
}

impl RecipeRunner<'_> {
    pub(super) fn prepare(
        &self,
        variant: usize,
        env: &[(String, String)],
        words: Vec<String>,
        environment_bytes: Option<usize>,
    ) -> Result<Prepared, LabError> {
        let (launch, role) = &self.launches[variant];
        let mut launch = launch.clone();
        launch.conf.clear();
        launch.load.clear();
        launch.env.extend(env.iter().cloned());
        let options = Options {
            bare: *role == Role::Bare,
            environment_bytes,
            seed: disk_seed(self.request.seed, &self.prepared),
            of_recipe: true,
            ..self.options.clone()
        };
        let words: Vec<_> = words.into_iter().map(Into::into).collect();
        Ok(prepare(&launch, &options, &words)?)
    }

    pub(super) fn wait_for_writeback(&mut self) {
        if !self.writeback.wait() {
            self.unsettled += 1;
        }
    }

    pub(super) fn load_record(&self, text: &str, window: Duration) -> Result<LoadRecord, String> {
        let operations = match &self.recipe.work {
            Work::Number(full, brief) => {
                if self.brief {
                    *brief
                } else {
                    *full
                }
            }
            Work::Read(regex) => read_operations(regex, text)?,
        };
        Ok(LoadRecord {
            operations,
            window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX),
            values: read_metrics(&self.recipe.metrics, text)?,
            outcome: String::new(),
            answers: Vec::new(),
            latencies: None,
            service: None,
        })
    }

    /// Drain and check: what came out, equal for all variants; then the table, equal for
    /// all runs of one.
    pub(super) fn outcome(
        &mut self,
        variant: usize,
        instance: &Instance,
        record: &mut LoadRecord,
    ) -> Phase<()> {
        record.outcome = self.checked(variant, instance)?;
        if self.recipe.file.table.is_none() {
            return Ok(());
        }
        instance.run_hook(Hook::Table, || true)?;
        let text = instance.hook_text();
        let answers = match answers::read(&text) {
            Ok(answers) => answers,
            Err(problem) => return out(format!("table.command: {problem}")),
        };
        let of = match self.launches[variant].1 {
            Role::Hidden => 0,
            _ => variant,
        };
        let first = self.answers.entry(of).or_insert_with(|| answers.clone());
        if let Some(difference) = answers::difference(first, &answers) {
            return out(difference);
        }
        record.answers = answers;
        Ok(())
    }

    fn checked(&mut self, variant: usize, instance: &Instance) -> Phase<String> {
        instance.run_hook(Hook::Drain, || true)?;
        if let Err(error) = instance.run_hook(Hook::Check, || true) {
            return match RunError::from(error) {
                RunError::Failed(failure) if interruptions() > 1 => failed(failure.reason),
                RunError::Failed(failure) => out(failure.reason),
                error => Err(error),
            };
        }
        let outcome = instance.hook_text();
        let outcome = outcome.trim().to_owned();
        if matches!(self.launches[variant].1, Role::Baseline | Role::Hidden) {
            self.expected_outcome.get_or_insert_with(|| outcome.clone());
        }
        match &self.expected_outcome {
            Some(expected) if *expected != outcome => out(format!(
                "another outcome than the baseline's: `{outcome}`, not `{expected}`"
            )),
            _ => Ok(outcome),
        }
    }
}
