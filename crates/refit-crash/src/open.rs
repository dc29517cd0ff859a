//! One state again, mounted for a person to look at.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::geteuid;

use crate::disk_server::DiskServer;
use crate::error::{CrashError, io_error};
use crate::filesystem::unmount;
use crate::image::Cut;
use crate::isolated::isolated;
use crate::record::Record;
use crate::recorded_run::MOUNT;
use crate::records::{REPORT, Records};
use crate::report::CrashReport;
use crate::states::States;
use crate::sys::loopback::Access;

/// Bytes; a report of 100,000 cuts has some 30 MB.
const LONGEST_REPORT: u64 = 256 << 20;

/// A state by its name: `DIRECTORY/MODE/CUT`.
#[derive(Clone, Debug)]
pub struct StateName {
    /// The report's directory.
    pub directory: PathBuf,
    /// The mode's directory in it.
    pub mode: String,
    /// The cut.
    pub cut: Cut,
}

impl StateName {
    /// Parses a name.
    ///
    /// # Errors
    /// What it should look like.
    pub fn parse(name: &Path) -> Result<StateName, CrashError> {
        let invalid = || {
            CrashError::Refused(format!(
                "{} is not the name of a state; a report names them as DIRECTORY/MODE/c1234-torn-17",
                name.display()
            ))
        };
        let cut = name
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.parse().ok());
        let mode = name
            .parent()
            .and_then(Path::file_name)
            .and_then(|mode| mode.to_str());
        let directory = name.parent().and_then(Path::parent);
        match (directory, mode, cut) {
            (Some(directory), Some(mode), Some(cut)) => Ok(StateName {
                directory: directory.to_owned(),
                mode: mode.to_owned(),
                cut,
            }),
            _ => Err(invalid()),
        }
    }
}

/// Mounts the state in a directory of its own and runs the command there, or the
/// user's shell. The record is not trusted: nothing in the state can be executed,
/// device nodes and set-user-ID bits have no effect, and nothing outside that
/// directory changes.
///
/// # Errors
/// Another user could have written the record, or the state cannot be served or
/// mounted. The command's own code is the result.
pub fn open(state: &StateName, command: &[OsString]) -> Result<i32, CrashError> {
    let untrusted = UntrustedRecord::open(state)?;
    let filesystem = &untrusted.report.filesystem;
    if let Some(option) = filesystem.other_device() {
        return Err(CrashError::Refused(format!(
            "{}: the mount option {option:?} names another device; remove it from the report",
            state.directory.join(REPORT).display()
        )));
    }
    // A server that drops root has to reach its data. Nobody else can: the mount is of these processes alone.
    let place = Records::new(None)?;
    let mount = place.directory().join("mount");
    fs::create_dir(&mount).map_err(io_error("cannot make the mount point"))?;
    isolated(|| {
        let server = DiskServer::start(&place.directory().join("disk"), || {
            let mut states = States::new(untrusted.record()?, untrusted.report.tear_bytes);
            states.show(state.cut);
            Ok(states)
        })?;
        let device = server.attach(Access::Cached)?;
        filesystem
            .mount_noexec(device.path(), &mount)
            .map_err(io_error("the state does not mount (dmesg shows why)"))?;
        let (program, arguments) = command.split_first().expect("a command");
        let status = Command::new(program)
            .args(arguments)
            .env(MOUNT, &mount)
            .current_dir(&mount)
            .status()
            .map_err(io_error(format!("cannot run {}", program.display())))?;
        unmount(&mount).map_err(io_error("the state is still in use"))?;
        drop(device);
        server
            .end()
            .map_err(io_error("the state is still in use"))?;
        Ok(status.code().unwrap_or(128))
    })
}

/// A record and its report, opened: other files under the same names change nothing.
struct UntrustedRecord {
    report: CrashReport,
    path: PathBuf,
    file: File,
}

impl UntrustedRecord {
    fn open(state: &StateName) -> Result<UntrustedRecord, CrashError> {
        let directory = open_owned(CWD, &state.directory, OFlags::DIRECTORY, &state.directory)?;
        let path = state.directory.join(REPORT);
        let text = open_owned(&directory, Path::new(REPORT), OFlags::NOFOLLOW, &path)?;
        let mut text = text.take(LONGEST_REPORT);
        let mut bytes = Vec::new();
        text.read_to_end(&mut bytes)
            .map_err(io_error(format!("cannot read {}", path.display())))?;
        let report = serde_json::from_slice(&bytes).map_err(|error| {
            CrashError::Refused(format!(
                "{} is not a report of refit crash: {error}",
                path.display()
            ))
        })?;
        let mode = state.directory.join(&state.mode);
        let path = mode.join("record");
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let mode = open_owned(&directory, Path::new(&state.mode), flags, &mode)?;
        let file = open_owned(&mode, Path::new("record"), OFlags::NOFOLLOW, &path)?;
        Ok(UntrustedRecord { report, path, file })
    }

    fn record(&self) -> Result<Record, CrashError> {
        let file = self.file.try_clone().map_err(io_error("cannot open"))?;
        Record::read(file).map_err(|error| CrashError::Record {
            path: self.path.clone(),
            error,
        })
    }
}

/// Opens a file or directory that only this user can have written: the kernel is
/// going to mount what is in it. `shown` is for messages.
fn open_owned(at: impl AsFd, name: &Path, flags: OFlags, shown: &Path) -> Result<File, CrashError> {
    // A FIFO would wait for its other end.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | flags;
    let failed = || io_error(format!("no record: {}", shown.display()));
    let file = openat(at, name, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| failed()(error.into()))?;
    let about = file.metadata().map_err(failed())?;
    let is_wanted =
        about.is_dir() == flags.contains(OFlags::DIRECTORY) && (about.is_dir() || about.is_file());
    let by_others = about.mode() & 0o002 != 0 || (about.mode() & 0o020 != 0 && about.gid() != 0);
    let me = geteuid().as_raw();
    if is_wanted && about.uid() == me && !by_others {
        return Ok(file);
    }
    Err(CrashError::Refused(format!(
        "{}: another user can write it (owner {}, mode {:o}), and a damaged file system on purpose can harm the kernel \
         that mounts it; if you trust it, copy the directory: cp -r --no-preserve=all DIRECTORY /root/",
        shown.display(),
        about.uid(),
        about.mode() & 0o7777,
    )))
}
