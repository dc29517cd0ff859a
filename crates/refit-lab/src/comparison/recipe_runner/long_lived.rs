//! A service that is started once: all runs load the same one, and a variant is
//! what can be changed while it runs.
//!
//! What `--with` changes is applied once, after the start; what a variant adds is
//! applied before each of its runs, and taken back after it. Where a run fails the
//! state is unknown, and the next run has a new instance.

use std::time::{Duration, Instant};

use refit_knobs::Launch;
use refit_recipe::{ConfSteps, Hook, names};
use refit_run::tree::Part;

use super::phase::{Phase, RunError, failed};
use super::state::{LongLived, RecipeRunner, Watched};
use crate::comparison::runner::Made;
use crate::error::LabError;
use crate::experiment::{Role, VariantRecord};

/// Only what a command changes can differ between variants of one server.
pub fn check(launches: &[(Launch, Role)], variants: &[VariantRecord]) -> Result<(), LabError> {
    let beneath = |launch: &Launch| Launch {
        conf: Vec::new(),
        ..launch.clone()
    };
    let first = launches.first().map(|(launch, _)| beneath(launch));
    for ((launch, role), variant) in launches.iter().zip(variants) {
        let remedy = if *role == Role::Bare {
            "leave out --bare"
        } else if first.as_ref() != Some(&beneath(launch)) {
            "give it to the one server of all variants: --with"
        } else {
            continue;
        };
        return Err(LabError::LongLived {
            variant: variant.name.clone(),
            remedy,
        });
    }
    Ok(())
}

impl RecipeRunner<'_> {
    /// One run on the service of all runs.
    pub(super) fn run_long_lived(&mut self, variant: usize) -> Result<Made, LabError> {
        let mut made = Made::nothing();
        let ran = self.try_long_lived(variant, &mut made);
        self.directory.tree.kill(Part::Hooks);
        match ran {
            Ok(()) => {}
            Err(RunError::Failed(failure)) => made.set_failure(failure.reason, failure.blame),
            Err(RunError::Lab(error)) => return Err(error),
        }
        Ok(made)
    }

    fn try_long_lived(&mut self, variant: usize, made: &mut Made) -> Phase<()> {
        let mut service = match self.long_lived.take() {
            Some(service) => service,
            None => self.start_long_lived()?,
        };
        let ran = self.on_long_lived(variant, &mut service, made);
        if ran.is_ok() {
            self.long_lived = Some(service);
        } else {
            give_up(service);
        }
        ran
    }

    /// A new instance, ready, with what `--with` changes.
    fn start_long_lived(&mut self) -> Phase<LongLived> {
        let recipe = self.recipe.with_load(&self.launches[0].0.load)?;
        let instance = self.directory.instance(&recipe, self.brief)?;
        instance.run_hook(Hook::Setup, || true)?;
        let watched = self.start(0, &instance)?;
        let mut service = LongLived { instance, watched };
        match self.ready_with(&mut service) {
            Ok(()) => Ok(service),
            Err(error) => {
                give_up(service);
                Err(error)
            }
        }
    }

    fn ready_with(&self, service: &mut LongLived) -> Phase<()> {
        let LongLived { instance, watched } = service;
        watched.service.wait_ready(instance, || {})?;
        let steps = ConfSteps::new(self.recipe, &self.launches[0].0.conf)?;
        change(steps.commands(), service)
    }

    fn on_long_lived(
        &mut self,
        variant: usize,
        service: &mut LongLived,
        made: &mut Made,
    ) -> Phase<()> {
        let all = &self.launches[0].0.conf;
        let own = self.launches[variant].0.conf.iter();
        let own: Vec<_> = own.filter(|one| !all.contains(one)).cloned().collect();
        let steps = ConfSteps::new(self.recipe, &own)?;
        change(steps.commands(), service)?;
        if self.brief {
            change(steps.inverses(), service)?;
            change(steps.commands(), service)?;
        }
        self.wait_for_writeback();
        let began = Instant::now();
        let LongLived { instance, watched } = &mut *service;
        self.loaded(variant, instance, watched, Duration::ZERO, made)?;
        made.run = watched.watch.so_far(began.elapsed());
        change(steps.inverses(), service)?;
        let left = self.directory.tree.members(Part::Hooks);
        if left.is_empty() {
            return Ok(());
        }
        failed(format!("these outlived the run: {}", names(&left)))
    }

    /// The service of all runs ends as it would after one.
    pub(super) fn end_long_lived(&mut self) -> Result<Option<String>, LabError> {
        let Some(LongLived { instance, watched }) = self.long_lived.take() else {
            return Ok(None);
        };
        let Watched {
            mut service,
            mut watch,
            prepared,
            ..
        } = watched;
        let stopped = service.stop(&instance, || watch.tick());
        prepared.session.remove();
        instance.free_tmpfs();
        match stopped {
            Err(error) if error.is_refits_own() => Err(error.into()),
            stopped => Ok(stopped.err().map(|error| error.to_string())),
        }
    }
}

/// Commands of `conf` settings, on the running service.
fn change<'s>(
    steps: impl Iterator<Item = (String, &'s str)>,
    service: &mut LongLived,
) -> Phase<()> {
    let LongLived { instance, watched } = service;
    let Watched { service, watch, .. } = watched;
    for (setting, command) in steps {
        service.run_command(instance, &setting, command, || watch.tick())?;
    }
    Ok(())
}

/// Ends it, whatever is wrong with it: no process of it is left.
fn give_up(service: LongLived) {
    let LongLived { instance, watched } = service;
    let Watched {
        mut service,
        mut watch,
        prepared,
        ..
    } = watched;
    service.abort(&instance, || watch.tick());
    prepared.session.remove();
    instance.free_tmpfs();
}

impl Drop for RecipeRunner<'_> {
    fn drop(&mut self) {
        if let Some(service) = self.long_lived.take() {
            give_up(service);
        }
    }
}
