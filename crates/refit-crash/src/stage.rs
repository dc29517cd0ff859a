//! The run that is recorded: the program, its load, and who listens.
//!
//! It happens in a pid namespace of its own, whose end is the end of every
//! process that the program left behind.

mod ear;
mod mails;
mod syncs;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_knobs::Launch;
use refit_lab::Watch;
use refit_launch::{End, Ended, Options, Prepared, Running, prepare, with_first_signals};
use refit_meter::Run;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use self::ear::Ear;
use self::mails::Mails;
use self::syncs::Syncs;
use crate::ack::{Ack, Listener};
use crate::clock::now;
use crate::error::{CrashError, io_error};
use crate::filesystem::is_full;
use crate::promise::Promise;
use crate::request::Request;
use crate::smtp;
use crate::sys::process::kill_all;

/// How often the stage looks up.
const TICK: Duration = Duration::from_millis(1);
/// How long a program may take to become ready, and to end when asked to.
const READY: Duration = Duration::from_secs(60);
const ENDING: Duration = Duration::from_secs(10);

/// What a recorded run leaves behind, beside the record.
#[derive(Debug, Serialize, Deserialize)]
pub struct Played {
    /// The part that can be cut: CLOCK_MONOTONIC, nanoseconds.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// In the order in which they came.
    pub promises: Vec<Promise>,
    /// What refit reached.
    pub run: Run,
}

/// Plays the run in the file system of `device`, at `mount`. `words` is the directory for
/// what the program and its helpers print.
///
/// # Errors
/// Something could not be started, or failed; what it said is in the error.
pub fn play(
    request: &Request,
    launch: &Launch,
    device: &Path,
    mount: &Path,
    words: &Path,
) -> Result<Played, CrashError> {
    let played = Stage {
        request,
        launch,
        device,
        mount,
        words,
    }
    .play();
    kill_all();
    played
}

struct Stage<'a> {
    request: &'a Request,
    launch: &'a Launch,
    device: &'a Path,
    mount: &'a Path,
    words: &'a Path,
}

impl Stage<'_> {
    fn play(&self) -> Result<Played, CrashError> {
        if let Some(command) = &self.request.prepare {
            self.to_end("--prepare", command, READY * 5)?;
        }
        self.settle()?;
        let mut prepared = self.prepared()?;
        let from = now();
        let mut show = Show::start(self, &mut prepared)?;
        let ended = show.watch(self, &prepared)?;
        let to = now();
        let promises = std::mem::take(&mut show.listener.promises);
        let run = show.watch.finish(&ended, &prepared.session);
        let is_full = is_full(self.mount);
        kill_all();
        prepared.session.remove();
        if is_full {
            return Err(CrashError::Refused(format!(
                "the disk of {} MiB was full in the end; take a larger one with --size",
                self.request.disk_bytes >> 20
            )));
        }
        if promises.is_empty() {
            return Err(self.silent(&ended));
        }
        Ok(Played {
            from,
            to,
            promises,
            run,
        })
    }

    /// What was prepared is on the disk before the first cut. On xfs syncfs alone
    /// flushes no disk when its log has nothing to force (fs/xfs/xfs_super.c); an
    /// fsync of the device always does (block/fops.c: blkdev_fsync).
    fn settle(&self) -> Result<(), CrashError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        openat(CWD, self.mount, flags, Mode::empty())
            .and_then(rustix::fs::syncfs)
            .map_err(|error| io_error("cannot sync the file system")(error.into()))?;
        File::open(self.device)
            .and_then(|device| device.sync_all())
            .map_err(io_error("cannot flush the disk"))
    }

    fn prepared(&self) -> Result<Prepared, CrashError> {
        let mut launch = self.launch.clone();
        // The recorded disk is the slow one.
        launch.disk = None;
        let mount = self.mount.to_string_lossy().into_owned();
        launch.env.retain(|(name, _)| name != MOUNT);
        launch.env.push((MOUNT.to_owned(), mount));
        let options = Options {
            trace: matches!(self.request.ack, Ack::Sync),
            allocator_dir: self.request.allocator_dir.clone(),
            reach: self.request.reach,
            seed: self.request.seed,
            ..Options::default()
        };
        Ok(prepare(&launch, &options, &self.request.command)?)
    }

    /// A shell command of the user's, not the program itself.
    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", command])
            .env(MOUNT, self.mount)
            .process_group(0);
        shell.stdin(Stdio::null());
        with_first_signals(&mut shell);
        shell
    }

    fn words(&self, name: &str) -> Result<File, CrashError> {
        let path = self.words.join(name);
        File::create(&path).map_err(io_error(format!("cannot write {}", path.display())))
    }

    fn said(&self, name: &str) -> String {
        let text = fs::read(self.words.join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().rev().take(5).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        if lines.is_empty() {
            "it said nothing".to_owned()
        } else {
            format!("it said:\n  {}", lines.join("\n  "))
        }
    }

    /// A helper that has to succeed.
    fn to_end(&self, option: &str, command: &str, patience: Duration) -> Result<(), CrashError> {
        let name = option.trim_start_matches('-');
        let words = self.words(name)?;
        let errors = words
            .try_clone()
            .map_err(io_error("cannot duplicate a descriptor"))?;
        let mut child = self
            .shell(command)
            .stdout(words)
            .stderr(errors)
            .spawn()
            .map_err(io_error(format!("cannot start {option}")))?;
        let began = Instant::now();
        let how = loop {
            match child
                .try_wait()
                .map_err(io_error(format!("cannot wait for {option}")))?
            {
                Some(status) if status.success() => return Ok(()),
                Some(status) => break format!("ended with {status}"),
                None if began.elapsed() > patience => {
                    break format!("took more than {} s", patience.as_secs());
                }
                None => sleep(TICK),
            }
        };
        Err(CrashError::Refused(format!(
            "{option} {command:?} {how}; {}",
            self.said(name)
        )))
    }

    fn silent(&self, ended: &Ended) -> CrashError {
        let how = match ended.end {
            End::Exited(code) => format!("ended with {code}"),
            End::Signaled(signal) => format!("was ended by signal {signal}"),
        };
        let ack = &self.request.ack;
        CrashError::Refused(format!(
            "no acknowledgement was seen ({ack}); the program {how}, and {}",
            self.said(PROGRAM)
        ))
    }
}

/// The variable in which everyone finds the recorded file system.
pub const MOUNT: &str = "REFIT_MOUNT";
const PROGRAM: &str = "program";
const LOAD: &str = "load";

/// The program and those around it.
struct Show {
    watch: Watch,
    program: Running,
    beside: Option<Child>,
    load: Option<Child>,
    mails: Option<Mails>,
    /// Where acknowledgements are written to, if it is a pipe.
    heard: Option<OwnedFd>,
    listener: Listener,
    /// Copies what is heard, so that errors can show it.
    copy: File,
}

impl Show {
    fn start(stage: &Stage, prepared: &mut Prepared) -> Result<Show, CrashError> {
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
    fn watch(&mut self, stage: &Stage, prepared: &Prepared) -> Result<Ended, CrashError> {
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
                self.listen()?;
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
                return Ok(ended);
            }
            if began.elapsed() > ENDING {
                self.program.kill();
            }
        }
    }

    /// Takes what has been written, or waits a moment.
    fn listen(&mut self) -> Result<(), CrashError> {
        let Some(heard) = &self.heard else {
            sleep(TICK);
            return Ok(());
        };
        let failed = |error| io_error("cannot read acknowledgements")(error);
        let mut polled = [PollFd::new(heard, PollFlags::IN)];
        let tick = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: 1_000_000,
        };
        match poll(&mut polled, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let mut buffer = [0; 64 << 10];
        let read = rustix::io::read(heard, &mut buffer);
        match read {
            Ok(0) => self.heard = None,
            Ok(length) => {
                self.listener.hear(&buffer[..length]);
                // Only errors show it.
                let _ = io::Write::write_all(&mut self.copy, &buffer[..length]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
        Ok(())
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

/// The command as words, for the report.
#[must_use]
pub fn words(command: &[OsString]) -> Vec<String> {
    let text = |word: &OsString| OsStr::to_string_lossy(word).into_owned();
    command.iter().map(text).collect()
}

/// Reads a pipe to its end.
///
/// # Errors
/// It cannot be read.
pub fn read_all(from: OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(from).read_to_end(&mut bytes)?;
    Ok(bytes)
}
