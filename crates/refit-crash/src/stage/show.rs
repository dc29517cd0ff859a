//! The program, its load and who listens, from the first start to the last end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Instant;

use refit_lab::Watch;
use refit_launch::{Ended, Prepared, Running};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::ear::Ear;
use super::mails::Mails;
use super::syncs::Syncs;
use super::{ENDING, LOAD, PROGRAM, READY, Stage, TICK};
use crate::ack::{Ack, Listener};
use crate::error::{CrashError, io_error};
use crate::smtp;

const READ_BYTES: usize = 64 << 10;
/// A pipe holds no more than 1 MiB unless root asks for more; what outlives the program may write for ever.
const READS_OF_A_FULL_PIPE: usize = (1 << 20) / READ_BYTES;

/// The program and those around it.
pub struct Show {
    /// What refit sees of it.
    pub watch: Watch,
    program: Running,
    beside: Option<Child>,
    load: Option<Child>,
    mails: Option<Mails>,
    /// Where acknowledgements are written to, if it is a pipe.
    heard: Option<OwnedFd>,
    /// What was acknowledged.
    pub listener: Listener,
    /// Copies what is heard, so that errors can show it.
    copy: File,
}

impl Show {
    /// Starts all of them, in the order in which they need one another.
    ///
    /// # Errors
    /// One of them cannot be started, or the program did not become ready.
    pub fn start(stage: &Stage, prepared: &mut Prepared) -> Result<Show, CrashError> {
        let request = stage.request;
        let is_service = request.load.is_some() || matches!(request.ack, Ack::Smtp(_));
        let beside = match &request.beside {
            Some(command) => {
                let words = stage.words("beside")?;
                let errors = words
                    .try_clone()
                    .map_err(io_error("cannot duplicate a descriptor"))?;
                let mut shell = stage.shell(command);
                let child = shell.stdout(words).stderr(errors).spawn();
                Some(child.map_err(io_error("cannot start --beside"))?)
            }
            None => None,
        };
        let ear = Ear::new(&request.ack)?;
        let program_words = stage.words(PROGRAM)?;
        let mut files = ear.files(&program_words, !is_service)?;
        ear.announce(!is_service)?;
        let null = File::open("/dev/null").map_err(io_error("cannot open /dev/null"))?;
        let watch = Watch::begin(prepared, false);
        let program = prepared
            .start([null, files.remove(0), files.remove(0)], None)
            .map_err(|error| {
                CrashError::Refused(format!(
                    "cannot run {}: {error}",
                    request.command[0].display()
                ))
            })?;
        let mut show = Show {
            watch,
            program,
            beside,
            load: None,
            mails: None,
            heard: None,
            listener: Listener::new(match &request.ack {
                Ack::Regex(regex) => Some(regex.clone()),
                _ => None,
            }),
            copy: stage.words("heard")?,
        };
        if is_service {
            show.until_ready(stage)?;
        }
        if let Some(command) = &request.load {
            let words = stage.words(LOAD)?;
            let mut files = ear.files(&words, true)?;
            ear.announce(true)?;
            let mut shell = stage.shell(command);
            let child = shell
                .stdout(files.remove(0))
                .stderr(files.remove(0))
                .spawn();
            show.load = Some(child.map_err(io_error("cannot start --load"))?);
        }
        if let Ack::Smtp(smtp) = &request.ack {
            show.mails = Some(Mails::start(smtp));
        }
        show.heard = ear.finish();
        Ok(show)
    }

    fn until_ready(&mut self, stage: &Stage) -> Result<(), CrashError> {
        let began = Instant::now();
        while !Self::is_ready(stage)? {
            if self.program.poll().is_some() {
                return Err(CrashError::Refused(format!(
                    "the program ended before it was ready; {}",
                    stage.said(PROGRAM)
                )));
            }
            if began.elapsed() > READY {
                return Err(CrashError::Refused(format!(
                    "the program was not ready after {} s; {}",
                    READY.as_secs(),
                    stage.said(PROGRAM)
                )));
            }
            sleep(20 * TICK);
        }
        Ok(())
    }

    fn is_ready(stage: &Stage) -> Result<bool, CrashError> {
        if let Some(command) = &stage.request.ready {
            let mut shell = stage.shell(command);
            shell.stdout(Stdio::null()).stderr(Stdio::null());
            let status = shell.status().map_err(io_error("cannot start --ready"))?;
            return Ok(status.success());
        }
        Ok(match &stage.request.ack {
            Ack::Smtp(smtp) => smtp::is_open(&smtp.address),
            // The load waits for its server itself.
            _ => true,
        })
    }

    /// Listens until the load, or the program, has ended or the time is over.
    ///
    /// # Errors
    /// One of them failed or took too long, or a mail was refused.
    pub fn watch(&mut self, stage: &Stage, prepared: &Prepared) -> Result<Ended, CrashError> {
        let request = stage.request;
        let began = Instant::now();
        let mut trace = match (&request.ack, &prepared.board) {
            (Ack::Sync, Some(board)) => Some(Syncs::new(board)),
            _ => None,
        };
        loop {
            self.listen()?;
            if let Some(trace) = &mut trace {
                trace.drain(&mut self.listener.promises);
            }
            self.watch.tick();
            let program = self.program.poll();
            let is_service = self.load.is_some() || self.mails.is_some();
            if let (Some(_), true) = (&program, is_service) {
                return Err(CrashError::Refused(format!(
                    "the program ended during the load; {}",
                    stage.said(PROGRAM)
                )));
            }
            if let Some(ended) = program {
                self.listen_to_the_last(&mut trace)?;
                return Ok(ended);
            }
            if let Some(load) = &mut self.load
                && let Some(status) = load
                    .try_wait()
                    .map_err(io_error("cannot wait for --load"))?
            {
                if !status.success() {
                    return Err(CrashError::Refused(format!(
                        "--load ended with {status}; {}",
                        stage.said(LOAD)
                    )));
                }
                break;
            }
            if let Some(failure) = self
                .mails
                .as_mut()
                .and_then(|mails| mails.drain(&mut self.listener.promises))
            {
                return Err(CrashError::Refused(format!(
                    "a mail was not accepted: {failure}; {}",
                    stage.said(PROGRAM)
                )));
            }
            if began.elapsed() >= request.length {
                if request.is_open_ended() {
                    break;
                }
                return Err(CrashError::Refused(format!(
                    "{} did not end within {} s\n  give it more time with --for, or let --for end it: --for 10s --stop",
                    if self.load.is_some() {
                        "--load"
                    } else {
                        "the program"
                    },
                    request.length.as_secs()
                )));
            }
        }
        self.end(&mut trace)
    }

    /// The load is over; what follows is no part of what is cut.
    fn end(&mut self, trace: &mut Option<Syncs>) -> Result<Ended, CrashError> {
        if let Some(mails) = self.mails.take() {
            mails.stop(&mut self.listener.promises);
        }
        if let Some(load) = &self.load {
            kill_group(load);
        }
        self.program.terminate();
        let began = Instant::now();
        loop {
            self.listen()?;
            if let Some(trace) = trace {
                trace.drain(&mut self.listener.promises);
            }
            if let Some(ended) = self.program.poll() {
                self.listen_to_the_last(trace)?;
                return Ok(ended);
            }
            if began.elapsed() > ENDING {
                self.program.kill();
            }
        }
    }

    /// Takes what was acknowledged after it was last looked and before the program's end.
    fn listen_to_the_last(&mut self, trace: &mut Option<Syncs>) -> Result<(), CrashError> {
        for _ in 0..READS_OF_A_FULL_PIPE {
            if !self.listen()? {
                break;
            }
        }
        if let Some(trace) = trace {
            trace.drain(&mut self.listener.promises);
        }
        Ok(())
    }

    /// Takes what has been written, or waits a moment. Whether something had been.
    fn listen(&mut self) -> Result<bool, CrashError> {
        let Some(heard) = &self.heard else {
            sleep(TICK);
            return Ok(false);
        };
        let failed = |error| io_error("cannot read acknowledgements")(error);
        let mut polled = [PollFd::new(heard, PollFlags::IN)];
        let tick = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: 1_000_000,
        };
        match poll(&mut polled, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let mut buffer = [0; READ_BYTES];
        let read = rustix::io::read(heard, &mut buffer);
        match read {
            Ok(0) => {
                self.heard = None;
                return Ok(false);
            }
            Ok(length) => {
                self.listener.hear(&buffer[..length]);
                // Only errors show it.
                let _ = io::Write::write_all(&mut self.copy, &buffer[..length]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
        Ok(true)
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        for child in [&self.beside, &self.load].into_iter().flatten() {
            kill_group(child);
        }
    }
}

/// Ends a helper with what it started: a shell's pipeline would go on without
/// it, and a server that is asked to end may wait for its clients.
fn kill_group(leader: &Child) {
    // It may have ended. Its id names no other group before it is waited for,
    // and afterwards only when ids have come round in this namespace.
    let _ = kill_process_group(Pid::from_child(leader), Signal::KILL);
}
