//! A recipe's service: started, waited for, loaded, stopped.

use std::fs::{self, File};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use refit_run::{
    MemorySampler, Prepared, Running, Watch, doze, interruptions, memory_available, memory_sample,
    top_of,
    tree::{self, PROC, Part, Tree},
};

use super::RecipeRunner;
use super::phase::{Phase, described, failed, names, out, passed, seconds};
use super::window::Moment;
use crate::comparison::runner::{Made, io_error};
use crate::error::LabError;
use crate::experiment::ServiceRecord;
use crate::place::Instance;
use crate::ports::is_listening;
use crate::tool::TICK;
use refit_recipe::Ready;
use refit_recipe::last_lines;

/// Between two looks whether a service is ready: its time to be ready is known
/// this well.
const READY_TICK: Duration = Duration::from_millis(2);

/// The longest that a service that closed its connections takes to end.
const DYING: Duration = Duration::from_millis(100);

/// A service that was started.
pub struct Service {
    pub running: Running,
    pub watch: Watch,
    began: Instant,
    /// Memory of the machine before it.
    available: Option<u64>,
}

impl RecipeRunner<'_> {
    pub(super) fn with_service(
        &mut self,
        variant: usize,
        instance: &Instance,
        made: &mut Made,
    ) -> Phase<()> {
        let (prepared, mut service) = self.start(variant, instance)?;
        self.place.tree.set_leader(Some(service.running.pid()));
        let loaded = self.ready_and_loaded(variant, instance, &mut service, made);
        // Whatever happened, nothing of it goes on.
        let stopped = self.stop(instance, &mut service, matches!(loaded, Ok(Ok(()))));
        self.place.tree.set_leader(None);
        if let Some(ended) = service.running.poll() {
            made.run = service.watch.finish(&ended, &prepared.session);
        }
        prepared.session.remove();
        passed!(loaded);
        stopped
    }

    /// Starts it; nobody has waited for it yet.
    pub(super) fn start(
        &mut self,
        variant: usize,
        instance: &Instance,
    ) -> Result<(Prepared, Service), LabError> {
        let start = self.recipe.service.as_ref().map_or("", |s| &*s.start);
        let surroundings = self.surroundings(instance);
        let words = surroundings.words(&self.place.tree, Part::Service, start);
        let bytes = Some(self.environment_bytes + self.padding);
        let available = memory_available(Path::new(PROC));
        let mut prepared = self.prepare(variant, &surroundings.env, words, bytes)?;
        let log = &instance.service_log;
        let stdout = File::create(log).map_err(io_error("cannot open the files of a run"))?;
        let stderr = stdout
            .try_clone()
            .map_err(io_error("cannot open the files of a run"))?;
        let null = File::open("/dev/null").map_err(io_error("cannot open /dev/null"))?;
        let mut watch = Watch::begin(&prepared, false);
        if self.witness {
            watch = watch.with_witness();
        }
        let began = Instant::now();
        let running = match prepared.start([null, stdout, stderr], Some(&instance.dir)) {
            Ok(running) => running,
            Err(error) => {
                prepared.session.remove();
                return Err(LabError::Start {
                    command: start.to_owned(),
                    cause: error.0,
                });
            }
        };
        let service = Service {
            running,
            watch,
            began,
            available,
        };
        Ok((prepared, service))
    }

    fn ready_and_loaded(
        &mut self,
        variant: usize,
        instance: &Instance,
        service: &mut Service,
        made: &mut Made,
    ) -> Phase<()> {
        let ready = passed!(self.ready(instance, service));
        self.loaded(variant, instance, service, ready, made)
    }

    /// From the warm-up to the check. `ready`: what the start took; nothing where
    /// the service was kept from another run.
    pub(super) fn loaded(
        &mut self,
        variant: usize,
        instance: &Instance,
        service: &mut Service,
        ready: Duration,
        made: &mut Made,
    ) -> Phase<()> {
        let file = &self.recipe.file;
        let tree = &self.place.tree;
        let warmup = file.load.warmup.as_deref();
        let warmup = self.tool("load.warmup", warmup, instance, || lives(service, tree));
        passed!(self.alive("load.warmup", instance, service, warmup));
        let before = Moment::now(tree, service);
        let mut sampler = MemorySampler::new(Instant::now());
        let sample_of = |service: &Service| {
            let members = tree.members(Part::Service);
            let parent = top_of(Path::new(PROC), &members, service.running.pid()).unwrap_or(0);
            (members, parent)
        };
        let window = self.tool("load.command", Some(&file.load.command), instance, || {
            let now = Instant::now();
            if sampler.due(now) {
                let (members, parent) = sample_of(service);
                sampler.sample(now, Path::new(PROC), &members, parent);
            }
            lives(service, tree)
        });
        let window = passed!(self.alive("load.command", instance, service, window));
        let after = Moment::now(tree, service);
        let available = memory_available(Path::new(PROC));
        let (members, parent) = sample_of(service);
        let end = memory_sample(Path::new(PROC), &members, parent);
        let text = fs::read_to_string(&instance.load_output).unwrap_or_default();
        let mut record = match self.load_record(&text, window) {
            Ok(record) => record,
            Err(reason) => return out(reason),
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
            memory_used_bytes: service
                .available
                .zip(available)
                .and_then(|(before, now)| difference(before, now)),
            ..used
        });
        if let Err(mut failure) = self.outcome(variant, instance, &mut record)? {
            if !lives(service, &self.place.tree) {
                let said = last_lines(&instance.service_log);
                failure.reason += &format!("; the service has ended{said}");
            }
            return Ok(Err(failure));
        }
        made.load = Some(record);
        Ok(Ok(()))
    }

    /// Behind a phase the service lives. Where it does not, that and its last
    /// words say more than what the load noticed of it.
    pub(super) fn alive<T>(
        &self,
        key: &str,
        instance: &Instance,
        service: &mut Service,
        phase: Phase<T>,
    ) -> Phase<T> {
        let phase = phase?;
        let tree = &self.place.tree;
        let began = Instant::now();
        // A load may see the connection's end before the process has ended.
        while phase.is_err() && lives(service, tree) && began.elapsed() < DYING {
            doze(READY_TICK);
        }
        if interruptions() > 1 || lives(service, tree) {
            return Ok(phase);
        }
        let end = service.running.poll();
        let end = end.map_or_else(String::new, |end| format!(", {}", described(&end)));
        let said = last_lines(&instance.service_log);
        failed(format!("the service ended during {key}{end}{said}"))
    }

    pub(super) fn ready(&self, instance: &Instance, service: &mut Service) -> Phase<Duration> {
        let Some(start) = &self.recipe.service else {
            return Ok(Ok(Duration::ZERO));
        };
        let port = |name: &str| {
            let mut ports = instance.ports.iter();
            ports
                .find(|(known, _)| known == name)
                .map_or(0, |(_, port)| port.number)
        };
        loop {
            let is_ready = match &start.ready {
                Ready::Tcp(name) => is_listening(port(name)),
                Ready::Unix(path) => listens(&instance.dir.join(path)),
                Ready::Log(regex, file) => {
                    let own = &instance.service_log;
                    let file = file
                        .as_ref()
                        .map_or(own.clone(), |file| instance.dir.join(file));
                    regex.is_match(&String::from_utf8_lossy(
                        &fs::read(file).unwrap_or_default(),
                    ))
                }
                Ready::Command(command) => {
                    let left = start.ready_timeout.saturating_sub(service.began.elapsed());
                    self.tool_within(left, "service.ready", Some(command), instance, || true)?
                        .is_ok()
                }
            };
            if is_ready {
                return Ok(Ok(service.began.elapsed()));
            }
            let said = || last_lines(&instance.service_log);
            if let Some(ended) = service.running.poll()
                && self.place.tree.is_empty(Part::Service)
            {
                return failed(format!(
                    "the service ended with {} before it was ready{}",
                    described(&ended),
                    said()
                ));
            }
            if interruptions() > 1 {
                return failed("interrupted");
            }
            if service.began.elapsed() > start.ready_timeout {
                return out(format!(
                    "the service was not ready within {} ({}){}",
                    seconds(start.ready_timeout),
                    wanted(&start.ready),
                    said()
                ));
            }
            doze(READY_TICK);
        }
    }

    /// Ends the service. `properly`: what does not end by itself is told.
    pub(super) fn stop(
        &self,
        instance: &Instance,
        service: &mut Service,
        properly: bool,
    ) -> Phase<()> {
        let Some(start) = &self.recipe.service else {
            return Ok(Ok(()));
        };
        let tree = &self.place.tree;
        let mut said = None;
        if !properly {
            // It has failed already; what matters is that nothing is left.
            terminate(tree, service);
        } else if let Some(command) = &start.stop {
            let (patience, command) = (start.stop_timeout, Some(&**command));
            let run = self.tool_within(patience, "service.stop", command, instance, || true);
            said = run?.err();
        } else {
            terminate(tree, service);
        }
        let began = Instant::now();
        let patience = if properly {
            start.stop_timeout
        } else {
            Duration::from_secs(3)
        };
        let left = loop {
            service.watch.tick();
            tree.reap();
            let ended = service.running.poll().is_some();
            let left = tree.members(Part::Service);
            if ended && left.is_empty() && tree.is_empty(Part::Service) {
                break left;
            }
            if began.elapsed() > patience || interruptions() > 1 {
                break left;
            }
            doze(TICK);
        };
        let names = names(&left);
        let ignored = service.running.poll().is_none();
        tree.kill(Part::Service);
        service.running.kill();
        while service.running.poll().is_none() {
            doze(TICK);
        }
        if let Some(failure) = said {
            return Ok(Err(failure));
        }
        if properly && !left.is_empty() && interruptions() < 2 {
            let what = if ignored {
                "did not end"
            } else {
                "left processes behind"
            };
            return failed(format!(
                "the service {what} within {} of service.stop, and was killed: {names}{}",
                seconds(patience),
                last_lines(&instance.service_log)
            ));
        }
        if properly {
            self.nobody_left()
        } else {
            Ok(Ok(()))
        }
    }
}

/// Looks at its counters as well.
pub(super) fn lives(service: &mut Service, tree: &Tree) -> bool {
    service.watch.tick();
    service.running.poll().is_none() || !tree.is_empty(Part::Service)
}

/// Asks what was started to end, or the daemon that it left behind.
fn terminate(tree: &Tree, service: &mut Service) {
    if service.running.poll().is_none() {
        service.running.terminate();
    } else if let Some(daemon) = top_of(Path::new(PROC), &tree.members(Part::Service), 0) {
        tree::terminate(daemon);
    }
}

/// Somebody accepts connections on it, or reads datagrams from it.
fn listens(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
        || UnixDatagram::unbound().is_ok_and(|socket| socket.connect(path).is_ok())
}

fn wanted(ready: &Ready) -> String {
    match ready {
        Ready::Tcp(name) => format!("nobody listens on port {name}"),
        Ready::Unix(path) => format!("nobody listens on {path}"),
        Ready::Log(regex, file) => format!(
            "no line of {} matches `{}`",
            file.as_deref().unwrap_or("its output"),
            regex.as_str().trim_start_matches("(?m)")
        ),
        Ready::Command(command) => format!("`{command}` fails"),
    }
}
