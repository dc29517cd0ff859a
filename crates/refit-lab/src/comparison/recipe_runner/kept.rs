//! A service that is started once: all runs load the same one, and a variant is
//! what can be changed while it runs.
//!
//! What `--with` changes is done once, behind the start; what a variant adds is
//! done before each of its runs, and taken back behind it. Where a run fails the
//! state is unknown, and the next run has a new instance.

use std::time::{Duration, Instant};

use refit_knobs::Launch;
use refit_run::{Prepared, tree::Part};

use super::RecipeRunner;
use super::phase::{Phase, failed, names, passed};
use super::service::{Service, lives};
use crate::comparison::runner::{Made, io_error};
use crate::conf_steps::ConfSteps;
use crate::error::LabError;
use crate::experiment::{Role, VariantRecord};
use crate::place::Instance;

/// A service between two runs.
pub struct Kept {
    instance: Instance,
    prepared: Prepared,
    service: Service,
}

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
        return Err(LabError::Kept {
            variant: variant.name.clone(),
            remedy,
        });
    }
    Ok(())
}

impl RecipeRunner<'_> {
    /// One run on the kept service.
    pub(super) fn run_kept(&mut self, variant: usize) -> Result<Made, LabError> {
        let mut made = Made::nothing();
        let kept = match self.kept.take() {
            Some(kept) => Ok(kept),
            None => self.start_kept()?,
        };
        let ran = match kept {
            Ok(mut kept) => {
                let ran = self.on_kept(variant, &mut kept, &mut made);
                if matches!(ran, Ok(Ok(()))) {
                    self.kept = Some(kept);
                } else {
                    self.give_up(kept);
                }
                ran?
            }
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ran {
            made.set_failure(failure.reason, failure.at_once);
        }
        self.place.tree.kill(Part::Tools);
        Ok(made)
    }

    /// A new instance, ready, with what `--with` changes.
    fn start_kept(&mut self) -> Phase<Kept> {
        let instance = self
            .place
            .instance(self.recipe)
            .map_err(io_error("cannot make an instance"))?;
        let setup = self.recipe.file.service.setup.as_deref();
        passed!(self.tool("service.setup", setup, &instance, || true));
        let (prepared, service) = self.start(0, &instance)?;
        self.place.tree.set_leader(Some(service.running.pid()));
        let mut kept = Kept {
            instance,
            prepared,
            service,
        };
        let ready = self.ready_with(&mut kept);
        match ready {
            Ok(Ok(())) => Ok(Ok(kept)),
            other => {
                self.give_up(kept);
                other.map(|phase| phase.map(|()| unreachable!("it is an error")))
            }
        }
    }

    fn ready_with(&mut self, kept: &mut Kept) -> Phase<()> {
        passed!(self.ready(&kept.instance, &mut kept.service));
        let steps = ConfSteps::new(self.recipe, &self.launches[0].0.conf)?;
        self.change(steps.commands(), kept)
    }

    /// Commands of `conf` settings, on the running service.
    fn change<'s>(
        &self,
        steps: impl Iterator<Item = (String, &'s str)>,
        kept: &mut Kept,
    ) -> Phase<()> {
        let tree = &self.place.tree;
        for (setting, command) in steps {
            let run = self.tool(&setting, Some(command), &kept.instance, || {
                lives(&mut kept.service, tree)
            });
            passed!(self.alive(&setting, &kept.instance, &mut kept.service, run));
        }
        Ok(Ok(()))
    }

    fn on_kept(&mut self, variant: usize, kept: &mut Kept, made: &mut Made) -> Phase<()> {
        let all = &self.launches[0].0.conf;
        let own = self.launches[variant].0.conf.iter();
        let own: Vec<_> = own.filter(|one| !all.contains(one)).cloned().collect();
        let steps = ConfSteps::new(self.recipe, &own)?;
        passed!(self.change(steps.commands(), kept));
        if self.brief {
            passed!(self.change(steps.inverses(), kept));
            passed!(self.change(steps.commands(), kept));
        }
        if !self.writeback.wait() {
            self.unsettled += 1;
        }
        let began = Instant::now();
        let Kept {
            instance, service, ..
        } = kept;
        passed!(self.loaded(variant, instance, service, Duration::ZERO, made));
        made.run = kept.service.watch.so_far(began.elapsed());
        passed!(self.change(steps.inverses(), kept));
        let left = self.place.tree.members(Part::Tools);
        if left.is_empty() {
            return Ok(Ok(()));
        }
        failed(format!("these outlived the run: {}", names(&left)))
    }

    /// Whatever is wrong with it, nothing of it goes on.
    fn give_up(&mut self, mut kept: Kept) {
        let _ = self.stop(&kept.instance, &mut kept.service, false);
        self.place.tree.set_leader(None);
        kept.prepared.session.remove();
        kept.instance.free_tmpfs();
    }

    /// The service of all runs ends as it would behind one.
    pub(super) fn end_kept(&mut self) -> Result<Option<String>, LabError> {
        let Some(mut kept) = self.kept.take() else {
            return Ok(None);
        };
        let stopped = self.stop(&kept.instance, &mut kept.service, true);
        self.place.tree.set_leader(None);
        kept.prepared.session.remove();
        kept.instance.free_tmpfs();
        Ok(stopped?.err().map(|failure| failure.reason))
    }
}

impl Drop for RecipeRunner<'_> {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.give_up(kept);
        }
    }
}
