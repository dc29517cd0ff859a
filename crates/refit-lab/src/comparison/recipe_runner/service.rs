//! A run on a recipe's service: started, loaded, measured, stopped.

use std::path::Path;
use std::time::{Duration, Instant};

use refit_load::{Generated, LoadError, Plan};
use refit_recipe::{Hook, Instance, OpenLoop, Service, last_lines};
use refit_run::tree::{PROC, Part};
use refit_run::{MemorySampler, Watch, fork_copies, memory_available, memory_sample, top_of};

use super::open_load;
use super::phase::{Phase, RunError, failed, out};
use super::state::{RecipeRunner, Watched};
use super::window::Moment;
use crate::comparison::runner::Made;
use crate::experiment::ServiceRecord;
use crate::memory_reason::MemoryReadings;

/// What came of the measured window.
enum Loaded {
    /// How long the load's command took.
    Closed(Duration),
    /// Requests at their times.
    Open(OpenLoop, Plan, Result<Box<Generated>, LoadError>),
}

impl RecipeRunner<'_> {
    pub(super) fn with_service(
        &mut self,
        variant: usize,
        instance: &Instance,
        made: &mut Made,
    ) -> Phase<()> {
        let mut watched = self.start(variant, instance)?;
        let loaded = self.ready_and_loaded(variant, instance, &mut watched, made);
        let Watched {
            mut service,
            mut watch,
            prepared,
            ..
        } = watched;
        // Whatever happened, no process of it is left.
        let stopped = if loaded.is_ok() {
            service.stop(instance, || watch.tick())
        } else {
            service.abort(instance, || watch.tick());
            Ok(())
        };
        if let Some(ended) = service.poll() {
            made.run = watch.finish(&ended, &prepared.session);
        }
        prepared.session.remove();
        loaded?;
        Ok(stopped?)
    }

    /// Starts it; it is not ready yet.
    pub(super) fn start(&mut self, variant: usize, instance: &Instance) -> Phase<Watched> {
        let bytes = Some(self.environment_bytes + self.padding);
        let available = memory_available(Path::new(PROC));
        let mut prepared = self.prepare(variant, instance.env(), instance.program(), bytes)?;
        let files = instance.service_files()?;
        let mut watch = Watch::begin(&prepared, false);
        if self.explains {
            watch = watch.without_readings();
        }
        if self.witness {
            watch = watch.with_witness();
        }
        match Service::start(instance, &mut prepared, files) {
            Ok(service) => Ok(Watched {
                service,
                watch,
                prepared,
                available,
            }),
            Err(error) => {
                prepared.session.remove();
                Err(error.into())
            }
        }
    }

    fn ready_and_loaded(
        &mut self,
        variant: usize,
        instance: &Instance,
        watched: &mut Watched,
        made: &mut Made,
    ) -> Phase<()> {
        let ready = watched.service.wait_ready(instance, || {})?;
        self.loaded(variant, instance, watched, ready, made)
    }

    /// From the warm-up to the check. `ready`: what the start took; nothing where the service was
    /// started for an earlier run.
    pub(super) fn loaded(
        &mut self,
        variant: usize,
        instance: &Instance,
        watched: &mut Watched,
        ready: Duration,
        made: &mut Made,
    ) -> Phase<()> {
        let Watched { service, watch, .. } = watched;
        service.run_hook(instance, Hook::Warmup, || watch.tick())?;
        let leader = service.pid();
        let tree = instance.tree();
        let members = || {
            let members = tree.members(Part::Service);
            let parent = top_of(Path::new(PROC), &members, leader).unwrap_or(0);
            (members, parent)
        };
        let before = Moment::now(tree, watch);
        let mut sampler = MemorySampler::new(Instant::now());
        let mut readings = self.explains.then(MemoryReadings::new);
        let tick = || {
            let now = Instant::now();
            if sampler.due(now) {
                let (members, parent) = members();
                sampler.sample(now, Path::new(PROC), &members, parent);
            }
            watch.tick();
            if let Some(readings) = &mut readings {
                readings.tick(instance, watch);
            }
        };
        let open = instance.recipe().open_loop();
        let loaded = match (open, instance.open_plan(self.schedule_seed)) {
            (_, Err(problem)) => return out(problem),
            (Some(open), Ok(Some(plan))) => {
                let made = open_load::send(instance, service, &plan, tick);
                Loaded::Open(open, plan, made.map(Box::new))
            }
            _ => Loaded::Closed(service.run_hook(instance, Hook::Load, tick)?),
        };
        made.memory = readings.and_then(|readings| readings.reason(watch));
        let after = Moment::now(tree, watch);
        let available = memory_available(Path::new(PROC));
        let (members, parent) = members();
        let end = memory_sample(Path::new(PROC), &members, parent);
        let copies = fork_copies(Path::new(PROC), &members);
        let mut record = match loaded {
            Loaded::Closed(window) => match self.load_record(&instance.hook_text(), window) {
                Ok(record) => record,
                Err(reason) => return out(reason),
            },
            Loaded::Open(..) if !watched.service.is_alive(instance) => {
                let output = last_lines(&instance.service_log);
                return failed(format!("the service has ended during its load{output}"));
            }
            Loaded::Open(_, _, Err(error)) => return failed(error.to_string()),
            Loaded::Open(open, plan, Ok(made)) => {
                open_load::record(&open, &plan, self.schedule_seed, &made)?
            }
        };
        let used = after.since(&before);
        let difference = |before: u64, now: u64| {
            i64::try_from(before)
                .ok()?
                .checked_sub(i64::try_from(now).ok()?)
        };
        record.service = Some(ServiceRecord {
            ready_ns: u64::try_from(ready.as_nanos()).unwrap_or(u64::MAX),
            memory: sampler.samples,
            end,
            fork_copies_bytes: copies.ok().filter(|_| !members.is_empty()),
            memory_used_bytes: watched
                .available
                .zip(available)
                .and_then(|(before, now)| difference(before, now)),
            ..used
        });
        match self.outcome(variant, instance, &mut record) {
            Err(RunError::Failed(mut failure)) => {
                if !watched.service.is_alive(instance) {
                    let output = last_lines(&instance.service_log);
                    failure.reason += &format!("; the service has ended{output}");
                }
                return Err(RunError::Failed(failure));
            }
            outcome => outcome?,
        }
        made.load = Some(record);
        Ok(())
    }
}
