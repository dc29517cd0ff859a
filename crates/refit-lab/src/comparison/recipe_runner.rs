//! Makes one run of one variant of a recipe: a fresh instance, the service, the
//! load on it, the check of the result.

mod long_lived;
mod phase;
mod program;
mod service;
mod window;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use refit_knobs::{Launch, Settings};
use refit_recipe::{
    ConfSteps, Hook, Instance, InstanceDirectory, Recipe, Work, answers, read_metrics,
    read_operations,
};
use refit_run::tree::Part;
use refit_run::{Options, Prepared, interruptions, prepare};
use refit_stats::Rng;

use self::long_lived::LongLived;
use self::phase::{Phase, RunError, failed, out};
use super::runner::{Made, Runs, disk_seed, io_error, launches, next_padding, options, unsettled};
use crate::copies::size;
use crate::error::LabError;
use crate::experiment::{AnswerRecord, LoadRecord, Role, VariantRecord};
use crate::request::Request;
use crate::warnings::Warning;
use crate::writeback::Writeback;

/// Runs variants of a recipe.
pub struct RecipeRunner<'a> {
    request: &'a Request,
    recipe: &'a Recipe,
    launches: Vec<(Launch, Role)>,
    /// The same for every run.
    options: Options,
    directory: InstanceDirectory,
    environment_bytes: usize,
    padding: usize,
    rng: Rng,
    writeback: Writeback,
    unsettled: usize,
    /// How many programs were prepared so far.
    prepared: Cell<u32>,
    /// What the baseline's check printed.
    expected_outcome: Option<String>,
    /// Of the largest instance so far.
    instance_bytes: u64,
    witness: bool,
    brief: bool,
    /// What each variant answered, the hidden baseline as the baseline.
    answers: BTreeMap<usize, Vec<AnswerRecord>>,
    /// The one service of all runs, where the recipe has `service.keep`.
    long_lived: Option<LongLived>,
}

impl<'a> RecipeRunner<'a> {
    /// `brief`: as much work as a check needs.
    pub fn new(
        request: &'a Request,
        recipe: &'a Recipe,
        settings: &[Settings],
        variants: &[VariantRecord],
        brief: bool,
    ) -> Result<Self, LabError> {
        let base = request.dir.as_path();
        let directory = InstanceDirectory::create(base, recipe).map_err(io_error(&format!(
            "cannot make a directory in {}",
            base.display()
        )))?;
        let launches = launches(settings, variants);
        let mut runner = RecipeRunner {
            request,
            recipe,
            options: options(request, &launches),
            launches,
            writeback: Writeback::new(&directory.path, request.budget),
            directory,
            environment_bytes: 0,
            padding: 0,
            rng: Rng::new(request.seed ^ 0x7061_6464_696e_6721),
            prepared: Cell::new(0),
            unsettled: 0,
            expected_outcome: None,
            instance_bytes: 0,
            witness: false,
            brief,
            answers: BTreeMap::new(),
            long_lived: None,
        };
        if recipe.keeps_service() {
            long_lived::check(&runner.launches, variants)?;
        }
        // What is missing is reported now, and the largest environment is known.
        for variant in 0..runner.launches.len() {
            for (name, value) in &runner.launches[variant].0.conf {
                recipe.conf(name, value)?;
            }
            let prepared = runner.prepare(variant, &[], vec!["true".to_owned()], None)?;
            runner.environment_bytes = runner.environment_bytes.max(prepared.environment_bytes());
            prepared.session.remove();
        }
        // Room for the instance's own variables.
        runner.environment_bytes += 2048;
        Ok(runner)
    }

    fn prepare(
        &self,
        variant: usize,
        env: &[(String, String)],
        words: Vec<String>,
        environment_bytes: Option<usize>,
    ) -> Result<Prepared, LabError> {
        let (launch, role) = &self.launches[variant];
        let mut launch = launch.clone();
        launch.conf.clear();
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

    fn all(&mut self, variant: usize, instance: &Instance) -> Result<Made, LabError> {
        let mut made = Made::nothing();
        match self.all_phases(variant, instance, &mut made) {
            Ok(()) => {}
            Err(RunError::Failed(failure)) => made.set_failure(failure.reason, failure.at_once),
            Err(RunError::Lab(error)) => return Err(error),
        }
        Ok(made)
    }

    fn all_phases(&mut self, variant: usize, instance: &Instance, made: &mut Made) -> Phase<()> {
        self.set_up(variant, instance)?;
        self.wait_for_writeback();
        if self.recipe.service.is_some() {
            self.with_service(variant, instance, made)
        } else {
            self.with_program(variant, instance, made)
        }
    }

    fn wait_for_writeback(&mut self) {
        if !self.writeback.wait() {
            self.unsettled += 1;
        }
    }

    /// Setup, then the configuration. A check also takes the configuration back once.
    fn set_up(&self, variant: usize, instance: &Instance) -> Phase<()> {
        instance.run_hook(Hook::Setup, || true)?;
        let steps = ConfSteps::new(self.recipe, &self.launches[variant].0.conf)?;
        let original = steps.contents(instance)?;
        instance.apply(&steps)?;
        if self.brief {
            instance.revert(&steps)?;
            if steps.contents(instance)? != original {
                return out("taken back, the configuration is not what it was");
            }
            instance.apply(&steps)?;
        }
        Ok(())
    }

    fn load_record(&self, text: &str, window: Duration) -> Result<LoadRecord, String> {
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
            service: None,
        })
    }

    /// Drain and check: what came out, equal for all variants; then the table, equal for
    /// all runs of one.
    fn outcome(
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

impl Runs for RecipeRunner<'_> {
    fn next_pair(&mut self) {
        self.padding = next_padding(&mut self.rng);
    }

    fn check_room(&self, runs: usize) -> Result<(), LabError> {
        let instances = if self.recipe.keeps_service() { 1 } else { runs };
        let needed = self.instance_bytes.saturating_mul(instances as u64);
        let free = self.directory.free_bytes();
        if needed > free / 10 * 9 {
            return Err(LabError::NoRoomForInstances {
                needed_mib: needed >> 20,
                free_mib: free >> 20,
                place: self.request.dir.clone(),
            });
        }
        Ok(())
    }

    fn call_witness(&mut self) {
        self.witness = true;
    }

    fn end(&mut self) -> Result<Option<String>, LabError> {
        self.end_long_lived()
    }

    fn run(&mut self, variant: usize) -> Result<Made, LabError> {
        if self.recipe.keeps_service() {
            return self.run_long_lived(variant);
        }
        let instance = self.directory.instance(self.recipe, self.brief)?;
        let made = self.all(variant, &instance);
        self.directory.tree.kill(Part::Hooks);
        instance.free_tmpfs();
        self.instance_bytes = self.instance_bytes.max(size(&instance.dir).unwrap_or(0));
        made
    }

    fn children_ns(&self) -> Option<u64> {
        let parts = [Part::Service, Part::Hooks].map(|part| self.directory.tree.cpu_ns(part));
        let sum = |[user, system]: [u64; 2]| user.saturating_add(system);
        Some(sum(parts[0]?).saturating_add(sum(parts[1]?)))
    }

    fn warnings(&self) -> Option<Warning> {
        unsettled(self.unsettled)
    }
}
