//! Makes one run of one variant of a recipe: a fresh instance, the service, the
//! load on it, the check of the result.

mod long_lived;
mod open_load;
mod phase;
mod program;
mod service;
mod state;
mod window;

use std::cell::Cell;
use std::collections::BTreeMap;

use refit_knobs::Settings;
use refit_recipe::{
    ConfError, ConfSteps, Hook, Instance, InstanceDirectory, Recipe, has_own_network,
};
use refit_run::tree::Part;
use refit_stats::Rng;

pub use self::state::RecipeRunner;

use self::phase::{Phase, RunError, out};
use super::runner::{Made, Runs, io_error, launches, next_padding, options, unsettled};
use crate::copies::size;
use crate::error::LabError;
use crate::experiment::VariantRecord;
use crate::request::{RecipeSubject, Request};
use crate::warnings::Warning;
use crate::writeback::Writeback;

impl<'a> RecipeRunner<'a> {
    /// `brief`: as much work as a check needs.
    pub fn new(
        request: &'a Request,
        subject: &'a RecipeSubject,
        settings: &[Settings],
        variants: &[VariantRecord],
        brief: bool,
    ) -> Result<Self, LabError> {
        let RecipeSubject {
            recipe, dir: base, ..
        } = subject;
        let directory = InstanceDirectory::create(base, recipe).map_err(io_error(&format!(
            "cannot make a directory in {}",
            base.display()
        )))?;
        let launches = launches(settings, variants);
        let mut runner = RecipeRunner {
            request,
            subject,
            recipe,
            options: options(request, &launches),
            launches,
            writeback: Writeback::new(&directory.path, request.budget),
            directory,
            environment_bytes: 0,
            padding: 0,
            rng: Rng::new(request.seed ^ 0x7061_6464_696e_6721),
            schedules: Rng::new(request.seed ^ 0x6172_7269_7661_6c73),
            schedule_seed: request.seed,
            prepared: Cell::new(0),
            unsettled: 0,
            expected_outcome: None,
            instance_bytes: 0,
            witness: false,
            explains: false,
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
            let of = |variant: usize| recipe.with_load(&runner.launches[variant].0.load);
            if of(variant)?.open_loop().is_some() != of(0)?.open_loop().is_some() {
                return Err(ConfError::MixedLoops.into());
            }
            let prepared = runner.prepare(variant, &[], vec!["true".to_owned()], None)?;
            runner.environment_bytes = runner.environment_bytes.max(prepared.environment_bytes());
            prepared.session.remove();
        }
        // Room for the instance's own variables.
        runner.environment_bytes += 2048;
        Ok(runner)
    }

    fn all(&mut self, variant: usize, instance: &Instance) -> Result<Made, LabError> {
        let mut made = Made::nothing();
        match self.all_phases(variant, instance, &mut made) {
            Ok(()) => {}
            Err(RunError::Failed(failure)) => made.set_failure(failure.reason, failure.blame),
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
}

/// What the service shared with the machine.
fn shares(recipe: &Recipe, why: &str) -> Warning {
    let service = &recipe.file.service;
    let user = service
        .user
        .as_ref()
        .map(|user| format!("ran as the machine's account {user}"));
    let ports = has_own_network(&recipe.file).then(|| {
        format!(
            "was open to other users at its ports ({})",
            service.ports.join(", ")
        )
    });
    let what: Vec<String> = user.into_iter().chain(ports).collect();
    Warning {
        text: format!("the service {}: {why}", what.join(" and ")),
        action: "in a container: docker run --privileged, podman run --privileged".to_owned(),
    }
}

impl Runs for RecipeRunner<'_> {
    fn next_pair(&mut self) {
        self.padding = next_padding(&mut self.rng);
        self.schedule_seed = self.schedules.next_u64();
    }

    fn check_room(&self, runs: usize) -> Result<(), LabError> {
        let instances = if self.recipe.keeps_service() { 1 } else { runs };
        let needed = self.instance_bytes.saturating_mul(instances as u64);
        let free = self.directory.free_bytes();
        if needed > free / 10 * 9 {
            return Err(LabError::NoRoomForInstances {
                needed_mib: needed >> 20,
                free_mib: free >> 20,
                place: self.subject.dir.clone(),
            });
        }
        Ok(())
    }

    fn call_witness(&mut self) {
        self.witness = true;
    }

    fn explain_memory(&mut self) {
        self.explains = true;
        self.options.heap = true;
    }

    fn end(&mut self) -> Result<Option<String>, LabError> {
        self.end_long_lived()
    }

    fn run(&mut self, variant: usize) -> Result<Made, LabError> {
        if self.recipe.keeps_service() {
            return self.run_long_lived(variant);
        }
        let recipe = self.recipe.with_load(&self.launches[variant].0.load)?;
        let instance = self.directory.instance(&recipe, self.brief)?;
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

    fn warnings(&self) -> Vec<Warning> {
        let shares = self
            .directory
            .shares
            .as_ref()
            .map(|why| shares(self.recipe, why));
        unsettled(self.unsettled)
            .into_iter()
            .chain(shares)
            .collect()
    }
}
