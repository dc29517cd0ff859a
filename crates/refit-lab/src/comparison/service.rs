//! Makes one run of one variant of a recipe: a fresh instance, the service, the
//! load on it, the check of what came out.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use refit_knobs::{Launch, Settings};
use refit_launch::{Ended, Options, Prepared, Running, doze, interruptions, prepare};
use refit_meter::{
    Calls, MemorySampler, Pressure, TreeUsage, memory_available, memory_sample, top_of, tree_usage,
};
use refit_stats::Rng;

use super::runner::{Made, Runs, next_padding};
use crate::conf_steps::ConfSteps;
use crate::error::LabError;
use crate::experiment::{LoadRecord, Role, ServiceRecord, VariantRecord, Warning};
use crate::output::{last_lines, read_metrics, read_operations};
use crate::place::{Instance, Place};
use crate::ports::is_listening;
use crate::recipe::{Ready, Recipe, Work, needs_path};
use crate::request::Request;
use crate::run::Watch;
use crate::settle::Settle;
use crate::tool::{Surroundings, TICK, ToolEnd};
use crate::tree::{Part, Tree};

const PROC: &str = "/proc";

/// Between two looks whether a service is ready: its time to be ready is known
/// this well.
const READY_TICK: Duration = Duration::from_millis(2);

/// Why a run does not count, and whether that is final for its variant.
struct Failure {
    reason: String,
    at_once: bool,
}

/// What one phase comes to: its value, a run that does not count, or an error
/// that ends the comparison.
type Phase<T> = Result<Result<T, Failure>, LabError>;

macro_rules! passed {
    ($phase:expr) => {
        match $phase? {
            Ok(value) => value,
            Err(failure) => return Ok(Err(failure)),
        }
    };
}

fn failed<T>(reason: impl Into<String>) -> Phase<T> {
    Ok(Err(Failure {
        reason: reason.into(),
        at_once: false,
    }))
}

fn out<T>(reason: impl Into<String>) -> Phase<T> {
    Ok(Err(Failure {
        reason: reason.into(),
        at_once: true,
    }))
}

/// Runs variants of a recipe.
pub struct ServiceRunner<'a> {
    request: &'a Request,
    recipe: &'a Recipe,
    launches: Vec<(Launch, Role)>,
    place: Place,
    environment_bytes: usize,
    padding: usize,
    rng: Rng,
    settle: Settle,
    unsettled: usize,
    /// What the baseline's check printed.
    expected_outcome: Option<String>,
    /// Of the largest instance so far.
    instance_bytes: u64,
    brief: bool,
}

fn io_error(action: &str) -> impl FnOnce(std::io::Error) -> LabError {
    let action = action.to_owned();
    move |cause| LabError::Io { action, cause }
}

impl<'a> ServiceRunner<'a> {
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
        let mut runner = ServiceRunner {
            request,
            recipe,
            launches: settings
                .iter()
                .zip(variants)
                .map(|(settings, variant)| (settings.launch(), variant.role))
                .collect(),
            settle: Settle::new(&place.path),
            place,
            environment_bytes: 0,
            padding: 0,
            rng: Rng::new(request.seed ^ 0x7061_6464_696e_6721),
            unsettled: 0,
            expected_outcome: None,
            instance_bytes: 0,
            brief,
        };
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
                .filter(|_| rustix::process::geteuid().is_root()),
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
        let Some(command) = command else {
            return Ok(Ok(Duration::ZERO));
        };
        let at = &instance.load_output;
        let errors = at.with_extension("stderr");
        let files = [at.as_path(), &errors].map(File::create);
        let [Ok(stdout), Ok(stderr)] = files else {
            return Err(LabError::Io {
                action: format!("cannot write {}", at.display()),
                cause: std::io::Error::last_os_error(),
            });
        };
        let surroundings = self.surroundings(instance);
        let timeout = self.recipe.load_timeout;
        let run = surroundings.run(&self.place.tree, command, [stdout, stderr], timeout, tick)?;
        let said = || {
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
                "{key} did not end within {:.0} s{}",
                timeout.as_secs_f64(),
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
        if !self.settle.wait() {
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

    /// The load itself is the program.
    fn with_program(&mut self, variant: usize, instance: &Instance, made: &mut Made) -> Phase<()> {
        let load = &self.recipe.file.load;
        passed!(self.tool("load.warmup", load.warmup.as_deref(), instance, || true));
        let surroundings = self.surroundings(instance);
        let words = surroundings.words(&self.place.tree, Part::Service, &load.command);
        let bytes = Some(self.environment_bytes + self.padding);
        let mut prepared = self.prepare(variant, &surroundings.env, words, bytes)?;
        let errors = instance.load_output.with_extension("stderr");
        let files = self.files(&instance.load_output, &errors)?;
        let mut watch = Watch::begin(&prepared, true);
        let timeout = Some(self.recipe.load_timeout);
        let ended = prepared.measure(files, Some(&instance.dir), timeout, || watch.tick());
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                prepared.session.remove();
                return Err(LabError::Start {
                    command: "sh".to_owned(),
                    cause: error.0,
                });
            }
        };
        made.run = watch.finish(&ended);
        prepared.session.remove();
        if ended.timed_out {
            return out(format!(
                "load.command did not end within {:.0} s",
                self.recipe.load_timeout.as_secs_f64()
            ));
        }
        if !matches!(ended.end, refit_launch::End::Exited(0)) {
            let said = last_lines(&errors);
            return failed(format!(
                "load.command ended with {}{said}",
                described(&ended)
            ));
        }
        let text = fs::read_to_string(&instance.load_output).unwrap_or_default();
        let mut record = match self.load_record(&text, ended.wall) {
            Ok(record) => record,
            Err(reason) => return out(reason),
        };
        record.outcome = passed!(self.outcome(variant, instance));
        made.load = Some(record);
        self.nobody_left(instance)
    }

    fn files(&self, stdout: &Path, stderr: &Path) -> Result<[File; 3], LabError> {
        let failed = || io_error("cannot open the files of a run");
        Ok([
            File::open("/dev/null").map_err(failed())?,
            File::create(stdout).map_err(failed())?,
            File::create(stderr).map_err(failed())?,
        ])
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
            service: None,
        })
    }

    /// Drain and check: what came out, equal for all variants.
    fn outcome(&mut self, variant: usize, instance: &Instance) -> Phase<String> {
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

    fn with_service(&mut self, variant: usize, instance: &Instance, made: &mut Made) -> Phase<()> {
        let Some(start) = &self.recipe.service else {
            return Ok(Ok(()));
        };
        let surroundings = self.surroundings(instance);
        let words = surroundings.words(&self.place.tree, Part::Service, &start.start);
        let bytes = Some(self.environment_bytes + self.padding);
        let available = memory_available(Path::new(PROC));
        let mut prepared = self.prepare(variant, &surroundings.env, words, bytes)?;
        let log = &instance.service_log;
        let stdout = File::create(log).map_err(io_error("cannot open the files of a run"))?;
        let stderr = stdout
            .try_clone()
            .map_err(io_error("cannot open the files of a run"))?;
        let null = File::open("/dev/null").map_err(io_error("cannot open /dev/null"))?;
        let watch = Watch::begin(&prepared, false);
        let began = Instant::now();
        let running = match prepared.start([null, stdout, stderr], Some(&instance.dir)) {
            Ok(running) => running,
            Err(error) => {
                prepared.session.remove();
                return Err(LabError::Start {
                    command: start.start.clone(),
                    cause: error.0,
                });
            }
        };
        self.place.tree.set_leader(Some(running.pid()));
        let mut service = Service {
            running,
            watch,
            began,
            available,
        };
        let loaded = self.loaded(variant, instance, &mut service, made);
        // Whatever happened, nothing of it goes on.
        let stopped = self.stop(instance, &mut service, matches!(loaded, Ok(Ok(()))));
        self.place.tree.set_leader(None);
        if let Some(ended) = service.running.poll() {
            made.run = service.watch.finish(&ended);
        }
        prepared.session.remove();
        passed!(loaded);
        stopped
    }

    /// From the start to the check.
    fn loaded(
        &mut self,
        variant: usize,
        instance: &Instance,
        service: &mut Service,
        made: &mut Made,
    ) -> Phase<()> {
        let file = &self.recipe.file;
        let ready = passed!(self.ready(instance, service));
        let lives = |service: &mut Service, tree: &Tree| {
            service.watch.tick();
            service.running.poll().is_none() || !tree.members(Part::Service).is_empty()
        };
        let tree = &self.place.tree;
        passed!(self.with_log(
            instance,
            self.tool("load.warmup", file.load.warmup.as_deref(), instance, || {
                lives(service, tree)
            })
        ));
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
        let window = passed!(self.with_log(instance, window));
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
        let outcome = self.outcome(variant, instance);
        record.outcome = passed!(self.with_log(instance, outcome));
        made.load = Some(record);
        Ok(Ok(()))
    }

    /// A failed phase says what the service said last, where that may be why.
    fn with_log<T>(&self, instance: &Instance, phase: Phase<T>) -> Phase<T> {
        Ok(phase?.map_err(|mut failure| {
            if failure.reason.starts_with("the service ended") {
                failure.reason += &last_lines(&instance.service_log);
            }
            failure
        }))
    }

    fn ready(&self, instance: &Instance, service: &mut Service) -> Phase<Duration> {
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
                Ready::Command(command) => self
                    .tool("service.ready", Some(command), instance, || true)?
                    .is_ok(),
            };
            if is_ready {
                return Ok(Ok(service.began.elapsed()));
            }
            let said = || last_lines(&instance.service_log);
            if let Some(ended) = service.running.poll()
                && self.place.tree.members(Part::Service).is_empty()
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
                    "the service was not ready within {:.0} s ({}){}",
                    start.ready_timeout.as_secs_f64(),
                    wanted(&start.ready),
                    said()
                ));
            }
            doze(READY_TICK);
        }
    }

    /// Ends the service. `properly`: what does not end by itself is told.
    fn stop(&self, instance: &Instance, service: &mut Service, properly: bool) -> Phase<()> {
        let Some(start) = &self.recipe.service else {
            return Ok(Ok(()));
        };
        let tree = &self.place.tree;
        let mut said = None;
        if !properly {
            // It has failed already; what matters is that nothing is left.
            service.running.terminate();
        } else if let Some(command) = &start.stop {
            if let Err(failure) = self.tool("service.stop", Some(command), instance, || true)? {
                said = Some(failure);
            }
        } else {
            service.running.terminate();
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
            if ended && left.is_empty() {
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
                "the service {what} within {:.0} s of service.stop, and was killed: {names}{}",
                patience.as_secs_f64(),
                last_lines(&instance.service_log)
            ));
        }
        if properly {
            self.nobody_left(instance)
        } else {
            Ok(Ok(()))
        }
    }

    /// What setup or load started in the background has ended as well.
    fn nobody_left(&self, _: &Instance) -> Phase<()> {
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

impl Runs for ServiceRunner<'_> {
    fn next_pair(&mut self) {
        self.padding = next_padding(&mut self.rng);
    }

    fn check_room(&self, runs: usize) -> Result<(), LabError> {
        let needed = self.instance_bytes.saturating_mul(runs as u64);
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

    fn run(&mut self, variant: usize) -> Result<Made, LabError> {
        let instance = self
            .place
            .instance(self.recipe)
            .map_err(io_error("cannot make an instance"))?;
        let made = self.all(variant, &instance);
        self.place.tree.kill(Part::Tools);
        instance.free_tmpfs();
        self.instance_bytes = self
            .instance_bytes
            .max(crate::copies::size(&instance.dir).unwrap_or(0));
        made
    }

    fn children_ns(&self) -> Option<u64> {
        let parts = [Part::Service, Part::Tools].map(|part| self.place.tree.cpu_ns(part));
        let sum = |[user, system]: [u64; 2]| user.saturating_add(system);
        Some(sum(parts[0]?).saturating_add(sum(parts[1]?)))
    }

    fn warnings(&self) -> Option<Warning> {
        super::runner::unsettled(self.unsettled)
    }
}

/// A service that was started.
struct Service {
    running: Running,
    watch: Watch,
    began: Instant,
    /// Memory of the machine before it.
    available: Option<u64>,
}

/// What a service has used so far.
struct Moment {
    cpu: Option<[u64; 2]>,
    usage: TreeUsage,
    pressure: Option<Pressure>,
    calls: BTreeMap<String, BTreeMap<String, Calls>>,
}

impl Moment {
    fn now(tree: &Tree, service: &Service) -> Moment {
        Moment {
            cpu: tree.cpu_ns(Part::Service),
            usage: tree_usage(Path::new(PROC), &tree.members(Part::Service)),
            pressure: Pressure::now(),
            calls: service.watch.calls(),
        }
    }

    fn since(&self, before: &Moment) -> ServiceRecord {
        let usage = self.usage.since(&before.usage);
        let (cpu, source) = match (before.cpu, self.cpu) {
            (Some(before), Some(now)) => {
                let used = [0, 1].map(|i: usize| now[i].saturating_sub(before[i]));
                (used, "cgroup v2")
            }
            _ => ([usage.user_ns, usage.system_ns], "processes"),
        };
        ServiceRecord {
            user_ns: cpu[0],
            system_ns: cpu[1],
            cpu_source: source.to_owned(),
            written_bytes: usage.written_bytes,
            pressure: before
                .pressure
                .zip(self.pressure)
                .map(|(before, now)| now.since(before)),
            calls: calls_since(&self.calls, &before.calls),
            ..ServiceRecord::default()
        }
    }
}

fn calls_since(
    now: &BTreeMap<String, BTreeMap<String, Calls>>,
    before: &BTreeMap<String, BTreeMap<String, Calls>>,
) -> BTreeMap<String, BTreeMap<String, Calls>> {
    let mut all = now.clone();
    for (executable, calls) in &mut all {
        for (name, calls) in calls.iter_mut() {
            if let Some(old) = before.get(executable).and_then(|calls| calls.get(name)) {
                calls.seen = calls.seen.saturating_sub(old.seen);
                calls.suppressed = calls.suppressed.saturating_sub(old.suppressed);
                calls.real = calls.real.saturating_sub(old.real);
                calls.waited_ns = calls.waited_ns.saturating_sub(old.waited_ns);
            }
        }
        calls.retain(|_, calls| calls.seen > 0);
    }
    all.retain(|_, calls| !calls.is_empty());
    all
}

fn described(ended: &Ended) -> String {
    match ended.end {
        refit_launch::End::Exited(code) => format!("exit code {code}"),
        refit_launch::End::Signaled(signal) => format!("signal {signal}"),
    }
}

fn names(pids: &[u32]) -> String {
    let name = |pid: &u32| refit_meter::process_name(Path::new(PROC), *pid).unwrap_or_default();
    let named = pids
        .iter()
        .take(5)
        .map(|pid| format!("{} (pid {pid})", name(pid)));
    named.collect::<Vec<_>>().join(", ")
}

/// Somebody accepts connections on it, or reads datagrams from it.
fn listens(path: &Path) -> bool {
    use std::os::unix::net::{UnixDatagram, UnixStream};
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
