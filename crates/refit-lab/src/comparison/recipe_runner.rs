//! Makes one run of one variant of a recipe: a fresh instance, the service, the
//! load on it, the check of what came out.

mod kept;
mod phase;
mod program;
mod service;
mod window;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use refit_knobs::{Launch, Settings};
use refit_run::{Options, Prepared, interruptions, prepare, tree::Part};
use refit_stats::Rng;
use rustix::process::geteuid;

use self::kept::Kept;
use self::phase::{Phase, failed, names, out, passed, seconds};
use super::runner::{Made, Runs, disk_seed, io_error, next_padding, unsettled};
use crate::conf_steps::ConfSteps;
use crate::copies::size;
use crate::error::LabError;
use crate::experiment::{AnswerRecord, LoadRecord, Role, VariantRecord};
use crate::place::{Instance, Place};
use crate::request::Request;

use crate::tool::{Surroundings, ToolEnd};
use crate::warnings::Warning;
use crate::writeback::Writeback;
use refit_recipe::answers;
use refit_recipe::{Recipe, Work, needs_path};
use refit_recipe::{last_lines, read_metrics, read_operations};

/// A disk with less room is full.
const FULL_BYTES: u64 = 64 << 10;

/// Runs variants of a recipe.
pub struct RecipeRunner<'a> {
    request: &'a Request,
    recipe: &'a Recipe,
    launches: Vec<(Launch, Role)>,
    place: Place,
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
    /// The one service of all runs, where the recipe keeps it.
    kept: Option<Kept>,
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
        let place = Place::create(base, recipe).map_err(io_error(&format!(
            "cannot make a directory in {}",
            base.display()
        )))?;
        let mut runner = RecipeRunner {
            request,
            recipe,
            launches: settings
                .iter()
                .zip(variants)
                .map(|(settings, variant)| (settings.launch(), variant.role))
                .collect(),
            writeback: Writeback::new(&place.path),
            place,
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
            kept: None,
        };
        if recipe.is_kept() {
            kept::check(&runner.launches, variants)?;
        }
        // What is missing is said now, and the largest environment is known.
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
            allocator_dir: self.request.allocator_dir.clone(),
            bare: *role == Role::Bare,
            environment_bytes,
            seed: disk_seed(self.request.seed, &self.prepared),
            reach: self.request.reach,
            ..Options::default()
        };
        let words: Vec<_> = words.into_iter().map(Into::into).collect();
        Ok(prepare(&launch, &options, &words)?)
    }

    fn surroundings(&self, instance: &Instance) -> Surroundings {
        let text = |path: &Path| path.display().to_string();
        let mut env = vec![
            ("REFIT_DIR".to_owned(), text(&instance.dir)),
            ("REFIT_TMPFS".to_owned(), text(&instance.tmpfs)),
            ("REFIT_RECIPE".to_owned(), text(&self.place.recipe())),
            ("PATH".to_owned(), needs_path()),
        ];
        if let Work::Number(full, brief) = self.recipe.work {
            let operations = if self.brief { brief } else { full };
            env.push(("REFIT_OPERATIONS".to_owned(), operations.to_string()));
        }
        for (name, port) in &instance.ports {
            let name = format!("REFIT_PORT_{}", name.to_uppercase());
            env.push((name, port.number.to_string()));
        }
        Surroundings {
            dir: instance.dir.clone(),
            env,
            user: self
                .recipe
                .file
                .service
                .user
                .clone()
                .filter(|_| geteuid().is_root()),
        }
    }

    /// A tool that has to succeed; its output is left in the instance's file.
    fn tool(
        &self,
        key: &str,
        command: Option<&str>,
        instance: &Instance,
        tick: impl FnMut() -> bool,
    ) -> Phase<Duration> {
        self.tool_within(self.recipe.load_timeout, key, command, instance, tick)
    }

    fn tool_within(
        &self,
        timeout: Duration,
        key: &str,
        command: Option<&str>,
        instance: &Instance,
        tick: impl FnMut() -> bool,
    ) -> Phase<Duration> {
        let Some(command) = command else {
            return Ok(Ok(Duration::ZERO));
        };
        let at = &instance.load_output;
        let errors = at.with_extension("stderr");
        let create = |path: &Path| {
            let action = format!("cannot write {}", path.display());
            File::create(path).map_err(io_error(&action))
        };
        let (stdout, stderr) = (create(at)?, create(&errors)?);
        let surroundings = self.surroundings(instance);
        let run = surroundings.run(&self.place.tree, command, [stdout, stderr], timeout, tick)?;
        let said = || {
            // There is no room for what it said of that either.
            if self.place.free_bytes() < FULL_BYTES {
                return format!(": no space is left in {}", self.request.dir.display());
            }
            let said = last_lines(&errors);
            if said.is_empty() {
                last_lines(at)
            } else {
                said
            }
        };
        match run.end {
            ToolEnd::Exited(status) if status.success() => Ok(Ok(run.wall)),
            ToolEnd::Exited(status) => failed(format!("{key} failed, {status}{}", said())),
            ToolEnd::TimedOut => failed(format!(
                "{key} did not end within {}{}",
                seconds(timeout),
                said()
            )),
            ToolEnd::Interrupted => failed("interrupted"),
            ToolEnd::Stopped => failed(format!("the service ended during {key}")),
        }
    }

    fn all(&mut self, variant: usize, instance: &Instance) -> Result<Made, LabError> {
        let mut made = Made::nothing();
        if let Err(failure) = self.prepared(variant, instance)? {
            made.set_failure(failure.reason, failure.at_once);
            return Ok(made);
        }
        if !self.writeback.wait() {
            self.unsettled += 1;
        }
        let service = self.recipe.service.is_some();
        let failure = if service {
            self.with_service(variant, instance, &mut made)?
        } else {
            self.with_program(variant, instance, &mut made)?
        };
        if let Err(failure) = failure {
            made.set_failure(failure.reason, failure.at_once);
        }
        Ok(made)
    }

    /// Setup, then the configuration.
    fn prepared(&self, variant: usize, instance: &Instance) -> Phase<()> {
        let setup = self.recipe.file.service.setup.as_deref();
        passed!(self.tool("service.setup", setup, instance, || true));
        let steps = ConfSteps::new(self.recipe, &self.launches[variant].0.conf)?;
        let surroundings = self.surroundings(instance);
        let original = steps.contents(&surroundings)?;
        passed!(self.configure(&steps, &surroundings, instance));
        if self.brief {
            steps.revert(&surroundings)?;
            for (setting, command) in steps.inverses() {
                passed!(self.tool(&setting, Some(command), instance, || true));
            }
            if steps.contents(&surroundings)? != original {
                return out("taken back, the configuration is not what it was");
            }
            passed!(self.configure(&steps, &surroundings, instance));
        }
        Ok(Ok(()))
    }

    fn configure(&self, steps: &ConfSteps, at: &Surroundings, instance: &Instance) -> Phase<()> {
        steps.apply(at)?;
        for (setting, command) in steps.commands() {
            passed!(self.tool(&setting, Some(command), instance, || true));
        }
        Ok(Ok(()))
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
        record.outcome = passed!(self.checked(variant, instance));
        let table = self.recipe.file.table.as_ref();
        let Some(command) = table.map(|table| &*table.command) else {
            return Ok(Ok(()));
        };
        passed!(self.tool("table.command", Some(command), instance, || true));
        let text = fs::read_to_string(&instance.load_output).unwrap_or_default();
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
        Ok(Ok(()))
    }

    fn checked(&mut self, variant: usize, instance: &Instance) -> Phase<String> {
        let file = &self.recipe.file;
        passed!(self.tool("load.drain", file.load.drain.as_deref(), instance, || true));
        let check = Some(&*file.check.command);
        if let Err(failure) = self.tool("check", check, instance, || true)? {
            return if interruptions() > 1 {
                failed(failure.reason)
            } else {
                out(failure.reason)
            };
        }
        let outcome = fs::read_to_string(&instance.load_output).unwrap_or_default();
        let outcome = outcome.trim().to_owned();
        if matches!(self.launches[variant].1, Role::Baseline | Role::Hidden) {
            self.expected_outcome.get_or_insert_with(|| outcome.clone());
        }
        match &self.expected_outcome {
            Some(expected) if *expected != outcome => out(format!(
                "another outcome than the baseline's: `{outcome}`, not `{expected}`"
            )),
            _ => Ok(Ok(outcome)),
        }
    }

    /// What setup or load started in the background has ended as well.
    fn nobody_left(&self) -> Phase<()> {
        let tree = &self.place.tree;
        let left = [tree.members(Part::Tools), tree.members(Part::Service)].concat();
        if left.is_empty() {
            return Ok(Ok(()));
        }
        let names = names(&left);
        tree.kill(Part::Tools);
        tree.kill(Part::Service);
        failed(format!("these outlived the run, and were killed: {names}"))
    }
}

impl Runs for RecipeRunner<'_> {
    fn next_pair(&mut self) {
        self.padding = next_padding(&mut self.rng);
    }

    fn check_room(&self, runs: usize) -> Result<(), LabError> {
        let instances = if self.recipe.is_kept() { 1 } else { runs };
        let needed = self.instance_bytes.saturating_mul(instances as u64);
        let free = self.place.free_bytes();
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
        self.end_kept()
    }

    fn run(&mut self, variant: usize) -> Result<Made, LabError> {
        if self.recipe.is_kept() {
            return self.run_kept(variant);
        }
        let instance = self
            .place
            .instance(self.recipe)
            .map_err(io_error("cannot make an instance"))?;
        let made = self.all(variant, &instance);
        self.place.tree.kill(Part::Tools);
        instance.free_tmpfs();
        self.instance_bytes = self.instance_bytes.max(size(&instance.dir).unwrap_or(0));
        made
    }

    fn children_ns(&self) -> Option<u64> {
        let parts = [Part::Service, Part::Tools].map(|part| self.place.tree.cpu_ns(part));
        let sum = |[user, system]: [u64; 2]| user.saturating_add(system);
        Some(sum(parts[0]?).saturating_add(sum(parts[1]?)))
    }

    fn warnings(&self) -> Option<Warning> {
        unsettled(self.unsettled)
    }
}
