//! The run that is recorded: the program, its load, and what they acknowledge.
//!
//! It happens in a pid namespace of its own, with which every process that the
//! program leaves behind ends.

mod acknowledgement_pipe;
mod hooks;
mod mails;
mod processes;
mod sync_calls;

use std::fs::File;
use std::path::Path;

use refit_knobs::Launch;
use refit_run::{End, Ended, Options, Prepared, Run, prepare};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

pub use self::hooks::MOUNT;
use self::hooks::{Hooks, PROGRAM, TIMEOUT};
use self::processes::Processes;
use crate::ack_source::AckSource;
use crate::acknowledgement::Acknowledgement;
use crate::error::{CrashError, io_error};
use crate::filesystem::is_full;
use crate::record::now;
use crate::request::Request;
use crate::sys::process::kill_all;

/// What a recorded run leaves, next to the record.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordedRun {
    /// The part that can be cut: CLOCK_MONOTONIC, nanoseconds.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// In the order in which they arrived.
    pub acknowledgements: Vec<Acknowledgement>,
    /// What refit reached.
    pub run: Run,
}

/// Runs the program in the file system of `device`, at `mount`. `output` is the
/// directory for what the program and its hooks print.
///
/// # Errors
/// A process could not be started, or failed; its output is in the error.
pub fn record_run(
    request: &Request,
    launch: &Launch,
    device: &Path,
    mount: &Path,
    output: &Path,
) -> Result<RecordedRun, CrashError> {
    let run = run(request, launch, device, &Hooks { mount, output });
    kill_all();
    run
}

fn run(
    request: &Request,
    launch: &Launch,
    device: &Path,
    hooks: &Hooks,
) -> Result<RecordedRun, CrashError> {
    if let Some(command) = &request.prepare {
        hooks.run("--prepare", command, TIMEOUT * 5)?;
    }
    sync(hooks.mount, device)?;
    let mut prepared = prepared(request, launch, hooks.mount)?;
    let from = now();
    let mut processes = Processes::start(request, hooks, &mut prepared)?;
    let ended = processes.wait(request, hooks, &prepared)?;
    let to = now();
    let acknowledgements = std::mem::take(&mut processes.reader.acknowledgements);
    let run = processes.watch.finish(&ended, &prepared.session);
    let is_full = is_full(hooks.mount);
    kill_all();
    prepared.session.remove();
    if is_full {
        return Err(CrashError::Refused(format!(
            "the disk of {} MiB was full at the end; take a larger one with --size",
            request.disk_bytes >> 20
        )));
    }
    if acknowledgements.is_empty() {
        return Err(silent(request, hooks, &ended));
    }
    Ok(RecordedRun {
        from,
        to,
        acknowledgements,
        run,
    })
}

/// What was prepared is on the disk before the first cut. On xfs syncfs alone
/// flushes no disk when its log has nothing to force (fs/xfs/xfs_super.c); an
/// fsync of the device always does (block/fops.c: blkdev_fsync).
fn sync(mount: &Path, device: &Path) -> Result<(), CrashError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    openat(CWD, mount, flags, Mode::empty())
        .and_then(rustix::fs::syncfs)
        .map_err(|error| io_error("cannot sync the file system")(error.into()))?;
    File::open(device)
        .and_then(|device| device.sync_all())
        .map_err(io_error("cannot flush the disk"))
}

fn prepared(request: &Request, launch: &Launch, mount: &Path) -> Result<Prepared, CrashError> {
    let mut launch = launch.clone();
    // The recorded disk has the latency.
    launch.disk = None;
    let mount = mount.to_string_lossy().into_owned();
    launch.env.retain(|(name, _)| name != MOUNT);
    launch.env.push((MOUNT.to_owned(), mount));
    let options = Options {
        trace: matches!(request.ack, AckSource::Sync),
        allocator_dir: request.allocator_dir.clone(),
        reach: request.reach,
        seed: request.seed,
        ..Options::default()
    };
    Ok(prepare(&launch, &options, &request.command)?)
}

fn silent(request: &Request, hooks: &Hooks, ended: &Ended) -> CrashError {
    let how = match ended.end {
        End::Exited(code) => format!("ended with {code}"),
        End::Signaled(signal) => format!("was ended by signal {signal}"),
    };
    CrashError::Refused(format!(
        "no acknowledgement was received ({}); the program {how}; {}",
        request.ack,
        hooks.last_lines(PROGRAM)
    ))
}
