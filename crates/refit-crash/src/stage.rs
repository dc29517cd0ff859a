//! The run that is recorded: the program, its load, and who listens.
//!
//! It happens in a pid namespace of its own, whose end is the end of every
//! process that the program left behind.

mod ear;
mod mails;
mod show;
mod syncs;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_knobs::Launch;
use refit_launch::{End, Ended, Options, Prepared, prepare, with_first_signals};
use refit_meter::Run;
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use self::show::Show;
use crate::ack::Ack;
use crate::clock::now;
use crate::error::{CrashError, io_error};
use crate::filesystem::is_full;
use crate::promise::Promise;
use crate::request::Request;
use crate::sys::process::kill_all;

/// How often the stage looks up.
const TICK: Duration = Duration::from_millis(1);
/// How long a program may take to become ready, and to end when asked to.
const READY: Duration = Duration::from_secs(60);
const ENDING: Duration = Duration::from_secs(10);
/// The variable in which everyone finds the recorded file system.
pub const MOUNT: &str = "REFIT_MOUNT";
/// Files of what the program and the load print.
const PROGRAM: &str = "program";
const LOAD: &str = "load";

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
