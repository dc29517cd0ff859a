//! The directory in which the records of one `refit crash` lie, and the removal of
//! those that a killed refit left.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use refit_run::{OwnName, open_own};
use rustix::fs::{FlockOperation, flock};

use crate::error::{CrashError, io_error, unwritable};
use crate::mode::State;
use crate::report::CrashReport;

/// Where directories are made that the user did not name.
const PLACE: &str = "/var/tmp";
const NAME: OwnName = OwnName {
    prefix: "refit-crash-",
    bytes: 6,
};
/// The report's file in a directory of records.
pub const REPORT: &str = "report.json";
/// A refit that has just made its directory may not have locked it yet.
const NEW: Duration = Duration::from_secs(60);

/// A directory that is removed when this is dropped, unless it is kept.
#[derive(Debug)]
pub struct Records {
    directory: PathBuf,
    /// Locked as long as refit or one of its processes lives.
    _lock: File,
    /// The user named it.
    is_named: bool,
    is_kept: bool,
}

impl Records {
    /// Makes the directory that the user named, or one in /var/tmp. Others may enter
    /// it: servers that drop root have to reach the file system in it.
    ///
    /// # Errors
    /// It exists already, or cannot be made.
    pub fn new(named: Option<&Path>) -> Result<Records, CrashError> {
        let records = Self::make(named)?;
        fs::set_permissions(&records.directory, Permissions::from_mode(0o711)).map_err(
            io_error("cannot set the mode of the directory of the records"),
        )?;
        Ok(records)
    }

    fn make(named: Option<&Path>) -> Result<Records, CrashError> {
        remove_abandoned();
        let path = match named {
            Some(path) => path.to_owned(),
            None => {
                let name = NAME.make().map_err(io_error("cannot make a random name"))?;
                Path::new(PLACE).join(name)
            }
        };
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => io_error(format!(
                "--record {}: name a directory that does not exist yet",
                path.display()
            ))(error),
            _ => unwritable(&path)(error),
        })?;
        let opened = fs::canonicalize(&path).and_then(|directory| {
            let lock = File::open(&directory)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok((directory, lock))
        });
        let (directory, lock) =
            opened.map_err(io_error(format!("cannot lock {}", path.display())))?;
        Ok(Records {
            directory,
            _lock: lock,
            is_named: named.is_some(),
            is_kept: false,
        })
    }

    /// Its path, absolute.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the report beside the records, for this user alone: it shows what the
    /// program printed.
    ///
    /// # Errors
    /// It is there already, or cannot be written.
    pub fn write_report(&self, text: &str) -> Result<(), CrashError> {
        let path = self.directory.join(REPORT);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        options
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(unwritable(&path))
    }

    /// Keeps the directory where a state with a loss can be opened again, or where
    /// the user named it, and shuts everybody else out. Returns the bytes that it
    /// takes then.
    #[must_use]
    pub fn keep_if_needed(&mut self, report: &CrashReport) -> Option<u64> {
        let mut states = report.modes.iter().flat_map(|mode| &mode.states);
        self.is_kept = self.is_named || states.any(State::is_bad);
        self.is_kept.then(|| {
            // It is this user's, who may do that.
            let _ = fs::set_permissions(&self.directory, Permissions::from_mode(0o700));
            size(&self.directory)
        })
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        if !self.is_kept {
            // What remains is in /var/tmp, under refit's name.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Removes what a killed refit of this user left: a directory of that name that is
/// not locked and has no report.
fn remove_abandoned() {
    let entries = fs::read_dir(PLACE).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| NAME.is_own(name)) && is_abandoned(&path) {
            // The next start tries again.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Anybody may put anything in /var/tmp: what another user put there, and what is
/// not a directory, is neither opened nor removed.
fn is_abandoned(path: &Path) -> bool {
    let Some(directory) = open_own(path) else {
        return false;
    };
    let is_old_directory = directory.metadata().is_ok_and(|about| {
        let age = about.modified().ok().and_then(|time| time.elapsed().ok());
        about.is_dir() && age.is_some_and(|age| age >= NEW)
    });
    // Shared: another refit that looks at the same moment holds nothing.
    is_old_directory
        && !path.join(REPORT).exists()
        && flock(&directory, FlockOperation::NonBlockingLockShared).is_ok()
}

fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => size(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}
