//! The program, its load and the background command, from their start to their
//! end, while refit reads what they acknowledge.

use std::fs::File;
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_recipe::{Instance, RunningHook, Service};
use refit_run::{
    Acknowledges, DurabilityCheck, Ended, Ignored, OutsideSyncs, Prepared, Running, Watch,
};
use rustix::process::{Pid, Signal, kill_process_group};

use super::acknowledgement_pipe::AcknowledgementPipe;
use super::arrivals::Arrivals;
use super::clock::Clock;
use super::hooks::{Hooks, TICK, TIMEOUT};
use super::mails::Mails;
use super::sync_calls::SyncCalls;
use crate::ack_source::AckSource;
use crate::error::{CrashError, io_error};
use crate::request::{Program, Request, Typed};
use crate::smtp;

/// How long a program may take to end when it was asked to.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// What was started with settings beneath it.
enum Started<'a> {
    /// A command, or the load of a recipe without a service.
    Command(Running),
    /// The service of a recipe.
    Service(Service, &'a Instance),
}

impl Started<'_> {
    fn poll(&mut self) -> Option<Ended> {
        match self {
            Started::Command(running) => running.poll(),
            Started::Service(service, _) => service.poll(),
        }
    }
}

/// What puts load on a service.
enum Load {
    Typed(Child),
    Recipe(RunningHook),
}

impl Load {
    fn poll(&mut self) -> Result<Option<ExitStatus>, CrashError> {
        match self {
            Load::Typed(child) => child.try_wait().map_err(io_error("cannot wait for --load")),
            Load::Recipe(hook) => Ok(hook.poll()?),
        }
    }

    /// Ends it with what it started. (A recipe's ends when it is dropped.)
    fn kill(self) {
        if let Load::Typed(child) = self {
            kill_group(&child);
        }
    }
}

/// The program and the processes around it.
pub struct Processes<'a> {
    /// What refit sees of it.
    pub watch: Watch,
    /// What no sync covers, where that is told.
    pub durability: Option<DurabilityCheck>,
    /// Who else flushes the recorded disk, where that can be watched.
    pub outside_syncs: Option<OutsideSyncs>,
    program: Started<'a>,
    background: Option<Child>,
    load: Option<Load>,
    /// How the load is named in messages.
    load_key: &'static str,
    mails: Option<Mails>,
    /// What they acknowledge.
    pub arrivals: Arrivals,
}

impl<'a> Processes<'a> {
    /// Starts all of them, in the order in which they need one another.
    ///
    /// # Errors
    /// One of them cannot be started, or the program did not become ready.
    pub fn start(
        request: &Request,
        ack: &AckSource,
        hooks: &Hooks<'a>,
        prepared: &mut Prepared,
    ) -> Result<Processes<'a>, CrashError> {
        let is_smtp = matches!(ack, AckSource::Smtp(_));
        let is_service = match &request.program {
            Program::Command(typed) => typed.load.is_some() || is_smtp,
            Program::Recipe(recipe) => recipe.service.is_some(),
        };
        let background = match &request.background {
            Some(command) => {
                let [output, errors] = hooks.files("background")?;
                let mut shell = hooks.shell(command);
                let child = shell.stdout(output).stderr(errors).spawn();
                Some(child.map_err(io_error("cannot start --background"))?)
            }
            None => None,
        };
        let pipe = AcknowledgementPipe::new(ack)?;
        let [output, errors] = pipe.files(&hooks.program_file()?, !is_service)?;
        pipe.open_in_next(!is_service)?;
        let null = File::open("/dev/null").map_err(io_error("cannot open /dev/null"))?;
        // A setting is in effect if the kernel agrees.
        let watch = Watch::begin(prepared, false).with_witness();
        let durability = prepared.file_ring.take().and_then(|ring| {
            ring.acknowledge(Acknowledges {
                file: pipe.file(),
                sockets: is_smtp,
            });
            DurabilityCheck::begin(ring, Ignored::default()).ok()
        });
        let program = match hooks.instance {
            Some(instance) if is_service => {
                let service = Service::start(instance, prepared, [null, output, errors])?;
                Started::Service(service, instance)
            }
            instance => {
                let directory = instance.map(|instance| &*instance.dir);
                let started = prepared.start([null, output, errors], directory);
                Started::Command(started.map_err(|error| {
                    CrashError::Refused(format!("cannot run {}: {error}", name(request)))
                })?)
            }
        };
        let mut processes = Processes {
            watch,
            durability,
            outside_syncs: OutsideSyncs::begin(hooks.mount).ok(),
            program,
            background,
            load: None,
            load_key: match &request.program {
                Program::Command(_) => "--load",
                Program::Recipe(_) => "the load",
            },
            mails: None,
            arrivals: Arrivals::new(ack, hooks.file("acknowledged")?),
        };
        if is_service {
            processes.wait_until_ready(request, ack, hooks)?;
        }
        let load = match &request.program {
            Program::Command(typed) => typed.load.as_deref(),
            Program::Recipe(recipe) => {
                (is_service && !is_smtp).then_some(&*recipe.file.load.command)
            }
        };
        if let Some(command) = load {
            let files = pipe.files(&hooks.load_file()?, true)?;
            pipe.open_in_next(true)?;
            processes.load = Some(match hooks.instance {
                Some(instance) => Load::Recipe(instance.start_command(command, files)?),
                None => {
                    let [output, errors] = files;
                    let mut shell = hooks.shell(command);
                    let child = shell.stdout(output).stderr(errors).spawn();
                    Load::Typed(child.map_err(io_error("cannot start --load"))?)
                }
            });
        }
        if let AckSource::Smtp(smtp) = ack {
            processes.mails = Some(Mails::start(smtp));
        }
        processes.arrivals.pipe = pipe.reader();
        Ok(processes)
    }

    fn wait_until_ready(
        &mut self,
        request: &Request,
        ack: &AckSource,
        hooks: &Hooks,
    ) -> Result<(), CrashError> {
        let typed = match (&mut self.program, &request.program) {
            (Started::Service(service, instance), _) => {
                service.wait_ready(instance, || {})?;
                return Ok(());
            }
            (Started::Command(_), Program::Recipe(_)) => return Ok(()),
            (Started::Command(_), Program::Command(typed)) => typed,
        };
        let began = Instant::now();
        while !is_ready(typed, ack, hooks)? {
            if self.program.poll().is_some() {
                return Err(CrashError::Refused(format!(
                    "the program ended before it was ready; {}",
                    hooks.printed_by_program()
                )));
            }
            if began.elapsed() > TIMEOUT {
                return Err(CrashError::Refused(format!(
                    "the program was not ready after {} s; {}",
                    TIMEOUT.as_secs(),
                    hooks.printed_by_program()
                )));
            }
            sleep(20 * TICK);
        }
        Ok(())
    }

    /// Reads acknowledgements until the load, or the program, has ended or the
    /// time is over; then ends the program.
    ///
    /// # Errors
    /// One of them failed or took too long, or a mail was refused.
    pub fn wait(
        &mut self,
        request: &Request,
        ack: &AckSource,
        hooks: &Hooks,
        prepared: &Prepared,
    ) -> Result<Ended, CrashError> {
        let mut clock = Clock::start(request);
        let mut calls = match (ack, &prepared.event_ring) {
            (AckSource::Sync, Some(ring)) => Some(SyncCalls::new(ring)),
            _ => None,
        };
        loop {
            self.arrivals.read(&mut calls)?;
            clock.tick(!self.arrivals.reader.acknowledgements.is_empty());
            self.watch.tick();
            if let Some(outside_syncs) = &mut self.outside_syncs {
                outside_syncs.tick();
            }
            let program = self.program.poll();
            let is_service = self.load.is_some() || self.mails.is_some();
            if let (Some(_), true) = (&program, is_service) {
                return Err(CrashError::Refused(format!(
                    "the program ended during the load; {}",
                    hooks.printed_by_program()
                )));
            }
            if let Some(ended) = program {
                self.arrivals.read_rest(&mut calls)?;
                return Ok(ended);
            }
            if self.has_load_ended(hooks)? {
                break;
            }
            if let Some(failure) = self
                .mails
                .as_mut()
                .and_then(|mails| mails.drain(&mut self.arrivals.reader.acknowledgements))
            {
                return Err(CrashError::Refused(format!(
                    "a mail was not accepted: {failure}; {}",
                    hooks.printed_by_program()
                )));
            }
            if clock.is_over() {
                if request.is_open_ended() {
                    break;
                }
                return Err(CrashError::Refused(format!(
                    "{} did not end within {} s\n  give it more time with --for, or let --for end it: --for 10s --stop",
                    if self.load.is_some() {
                        self.load_key
                    } else {
                        "the program"
                    },
                    request.length.as_secs()
                )));
            }
        }
        self.end(&mut calls)
    }

    fn has_load_ended(&mut self, hooks: &Hooks) -> Result<bool, CrashError> {
        let Some(load) = &mut self.load else {
            return Ok(false);
        };
        match load.poll()? {
            None => Ok(false),
            Some(status) if status.success() => Ok(true),
            Some(status) => Err(CrashError::Refused(format!(
                "{} ended with {status}; {}",
                self.load_key,
                hooks.printed_by_load()
            ))),
        }
    }

    /// Ends the load and the program. Nothing from here on is cut.
    fn end(&mut self, calls: &mut Option<SyncCalls>) -> Result<Ended, CrashError> {
        if let Some(mails) = self.mails.take() {
            mails.stop(&mut self.arrivals.reader.acknowledgements);
        }
        if let Some(load) = self.load.take() {
            load.kill();
        }
        let program = match &mut self.program {
            Started::Command(running) => running,
            Started::Service(service, instance) => {
                // Stopping the service does not end it: it does not belong to the service.
                if let Some(mut background) = self.background.take() {
                    kill_group(&background);
                    // The tree may have waited for it.
                    let _ = background.wait();
                }
                // How it ends does not matter: what it wrote is in the kernel.
                let _ = service.stop(instance, || {});
                let ended = service.poll().ok_or_else(|| {
                    CrashError::Refused("the service could not be ended".to_owned())
                })?;
                self.arrivals.read_rest(calls)?;
                return Ok(ended);
            }
        };
        program.terminate();
        let began = Instant::now();
        loop {
            self.arrivals.read(calls)?;
            if let Some(ended) = self.program.poll() {
                self.arrivals.read_rest(calls)?;
                return Ok(ended);
            }
            if began.elapsed() > END_TIMEOUT
                && let Started::Command(running) = &mut self.program
            {
                running.kill();
            }
        }
    }
}

impl Drop for Processes<'_> {
    fn drop(&mut self) {
        if let Some(background) = &self.background {
            kill_group(background);
        }
        if let Some(load) = self.load.take() {
            load.kill();
        }
    }
}

fn name(request: &Request) -> String {
    match &request.program {
        Program::Command(typed) => typed.command[0].display().to_string(),
        Program::Recipe(recipe) => format!("`{}`", recipe.file.load.command),
    }
}

fn is_ready(typed: &Typed, ack: &AckSource, hooks: &Hooks) -> Result<bool, CrashError> {
    if let Some(command) = &typed.ready {
        let mut shell = hooks.shell(command);
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        let status = shell.status().map_err(io_error("cannot start --ready"))?;
        return Ok(status.success());
    }
    Ok(match ack {
        AckSource::Smtp(smtp) => smtp::is_open(&smtp.address),
        // The load waits for its server itself.
        _ => true,
    })
}

/// Ends a hook with what it started: a shell's pipeline would go on without it,
/// and a server that is asked to end may wait for its clients.
fn kill_group(leader: &Child) {
    // It may have ended. Its id names no other group before it is waited for,
    // and afterwards only when ids have come round in this namespace.
    let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
}
