//! One state again, mounted for a person to look at.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disk_server::DiskServer;
use crate::error::{CrashError, io_error};
use crate::filesystem::unmount;
use crate::image::Cut;
use crate::inspection;
use crate::isolated::isolated;
use crate::recorded_run::MOUNT;
use crate::report::CrashReport;
use crate::states::States;
use crate::sys::loopback::Access;

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

/// Mounts the state where the check found it and runs the command there.
///
/// # Errors
/// The state cannot be served or mounted. The command's own code is the result.
pub fn open(
    state: &StateName,
    report: &CrashReport,
    command: &[OsString],
) -> Result<i32, CrashError> {
    isolated(|| {
        let record = state.directory.join(&state.mode).join("record");
        let at = state.directory.join("open");
        let server = DiskServer::start(&at, || {
            let mut states = States::new(inspection::open(&record)?, report.tear_bytes);
            states.show(state.cut);
            Ok(states)
        })?;
        let device = server.attach(Access::Cached)?;
        let mount = Path::new(&report.mount);
        std::fs::create_dir_all(mount)
            .map_err(io_error(format!("cannot make {}", report.mount)))?;
        report
            .filesystem
            .mount(device.path(), mount)
            .map_err(io_error("the state does not mount (dmesg says more)"))?;
        let (program, arguments) = command.split_first().expect("a command");
        let status = Command::new(program)
            .args(arguments)
            .env(MOUNT, mount)
            .current_dir(mount)
            .status()
            .map_err(io_error(format!("cannot run {}", program.display())))?;
        unmount(mount).map_err(io_error("the state is still in use"))?;
        drop(device);
        server
            .end()
            .map_err(io_error("the state is still in use"))?;
        Ok(status.code().unwrap_or(128))
    })
}
