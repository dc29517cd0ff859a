//! The run that is recorded: the program, its load, and what they acknowledge.
//!
//! It happens in a pid namespace of its own, with which every process that the
//! program leaves behind ends.

mod acknowledgement_pipe;
mod arrivals;
mod clock;
mod hooks;
mod mails;
mod processes;
mod sync_calls;

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use refit_knobs::Launch;
use refit_recipe::{ConfSteps, Hook, Instance, InstanceError, InstanceOptions, Location, Recipe};
use refit_run::seccomp::Backend;
use refit_run::{
    Acknowledges, DurabilityCheck, DurabilityReport, End, Ended, Options, OutsideSyncs, Prepared,
    Run, Tree, prepare,
};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};

pub use self::hooks::MOUNT;
use self::hooks::{Hooks, TIMEOUT};
use self::processes::Processes;
use crate::ack_source::AckSource;
use crate::acknowledgement::Acknowledgement;
use crate::error::{CrashError, io_error};
use crate::filesystem::is_full;
use crate::paths::Paths;
use crate::record::now;
use crate::request::{Program, Request};
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
    /// Variables of the program and its hooks, for the check.
    pub env: Vec<(String, String)>,
    /// What refit reached.
    pub run: Run,
    /// What no sync of the program covered on the recorded disk; `None` where that was not looked at.
    pub durability: Option<DurabilityReport>,
    /// Calls of sync(2) and syncfs(2) from outside, where they could be watched.
    pub outside_syncs: Option<u64>,
}

/// Runs the program in the file system of `device`. `output` is the directory
/// for what the program and its hooks print.
///
/// # Errors
/// A process could not be started, or failed; its output is in the error.
pub fn record_run(
    request: &Request,
    launch: &Launch,
    device: &Path,
    paths: &Paths,
    output: &Path,
) -> Result<RecordedRun, CrashError> {
    let instance = match &request.program {
        Program::Command(_) => None,
        Program::Recipe(recipe) => {
            let recipe = recipe
                .with_load(&launch.load)
                .map_err(InstanceError::from)?;
            Some(instance(&recipe, paths, output)?)
        }
    };
    let hooks = Hooks {
        mount: &paths.mount,
        output,
        instance: instance.as_ref(),
    };
    let run = run(request, launch, device, &hooks);
    kill_all();
    run
}

/// The recipe's instance is the recorded file system as a whole.
fn instance(recipe: &Recipe, paths: &Paths, output: &Path) -> Result<Instance, CrashError> {
    let tmpfs = paths.tmpfs();
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("tmpfs", &tmpfs, "tmpfs", flags, None)
        .map_err(|error| io_error("cannot mount a tmpfs")(error.into()))?;
    let mount = paths.mount.display().to_string();
    let options = InstanceOptions {
        location: Location {
            dir: paths.mount.clone(),
            tmpfs,
            recipe: paths.recipe(),
            output: output.to_owned(),
            base: paths.mount.clone(),
        },
        tree: Rc::new(Tree::in_own_namespace()),
        brief: false,
        env: vec![(MOUNT.to_owned(), mount)],
    };
    Ok(Instance::create(recipe, options)?)
}

fn run(
    request: &Request,
    launch: &Launch,
    device: &Path,
    hooks: &Hooks,
) -> Result<RecordedRun, CrashError> {
    match (&request.program, hooks.instance) {
        (Program::Command(typed), _) => {
            if let Some(command) = &typed.prepare {
                hooks.run("--prepare", command, TIMEOUT * 5)?;
            }
        }
        (Program::Recipe(recipe), Some(instance)) => set_up(recipe, launch, instance)?,
        (Program::Recipe(_), None) => unreachable!("a recipe has an instance"),
    }
    sync(hooks.mount, device)?;
    let ack = request
        .ack
        .resolve(|text| hooks.expand(text))
        .map_err(CrashError::Refused)?;
    let mut prepared = prepared(request, launch, hooks, &ack)?;
    let from = now();
    let mut processes = Processes::start(request, &ack, hooks, &mut prepared)?;
    let ended = processes.wait(request, &ack, hooks, &prepared)?;
    let to = now();
    let acknowledgements = std::mem::take(&mut processes.arrivals.reader.acknowledgements);
    let run = processes.watch.finish(&ended, &prepared.session);
    let durability = processes.durability.take();
    let durability = durability.and_then(|check| on_disk(check, hooks.mount));
    let outside_syncs = processes.outside_syncs.take().map(OutsideSyncs::finish);
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
        env: hooks.env(),
        run,
        durability,
        outside_syncs,
    })
}

/// What the acknowledgements of a run left uncovered below the mount. The end of the program is none: it may have been
/// ended.
fn on_disk(check: DurabilityCheck, mount: &Path) -> Option<DurabilityReport> {
    let mut report = check.finish(false).ok()?;
    report
        .findings
        .retain(|finding| Path::new(&finding.path).starts_with(mount));
    Some(report)
}

/// Setup, then the variant's configuration, then what the promise needs.
fn set_up(recipe: &Recipe, launch: &Launch, instance: &Instance) -> Result<(), CrashError> {
    instance.run_hook(Hook::Setup, || true)?;
    let steps = ConfSteps::new(recipe, &launch.conf).map_err(InstanceError::from)?;
    instance.apply(&steps)?;
    let promise = recipe.promise().ok();
    if let Some(command) = promise.and_then(|promise| promise.prepare.as_deref()) {
        instance.run_command("promise.prepare", command, recipe.load_timeout, || true)?;
    }
    Ok(())
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

fn prepared(
    request: &Request,
    launch: &Launch,
    hooks: &Hooks,
    ack: &AckSource,
) -> Result<Prepared, CrashError> {
    let mut launch = launch.clone();
    // The recorded disk has the latency, and the instance the configuration.
    launch.disk = None;
    launch.conf.clear();
    launch.load.clear();
    let env = hooks.env();
    launch
        .env
        .retain(|(name, _)| env.iter().all(|(own, _)| own != name));
    launch.env.extend(env);
    // Syncs that are not made cover nothing, as asked for.
    let looks = launch.sync.is_empty() && request.reach.backend != Backend::Seccomp;
    let options = Options {
        durability: looks.then(Acknowledges::default),
        trace: matches!(ack, AckSource::Sync),
        of_recipe: matches!(request.program, Program::Recipe(_)),
        allocator_dir: request.allocator_dir.clone(),
        reach: request.reach,
        seed: request.seed,
        ..Options::default()
    };
    let command = match (&request.program, hooks.instance) {
        (Program::Command(typed), _) => typed.command.clone(),
        (Program::Recipe(_), instance) => {
            let words = instance.map(Instance::program).unwrap_or_default();
            words.into_iter().map(Into::into).collect()
        }
    };
    Ok(prepare(&launch, &options, &command)?)
}

fn silent(request: &Request, hooks: &Hooks, ended: &Ended) -> CrashError {
    let how = match ended.end {
        End::Exited(code) => format!("ended with {code}"),
        End::Signaled(signal) => format!("was ended by signal {signal}"),
    };
    CrashError::Refused(format!(
        "no acknowledgement was received ({}); the program {how}; {}",
        request.ack,
        hooks.printed_by_program()
    ))
}
