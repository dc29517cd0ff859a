//! The records: one file for each service with a change, below one lock.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::file_state::{Staged, remove, sync_directory};
use crate::record::VERSION;
use crate::{Error, FileError, FileState, Record, System};

const PLACE: &str = "/var/lib/refit/changes";

/// How long another refit is waited for: a few restarts of a service.
const WAIT: Duration = Duration::from_secs(30);

/// The records, locked.
pub struct Store {
    dir: PathBuf,
    _lock: Option<File>,
}

impl Store {
    /// To change them. Nobody else reads or changes them meanwhile. Waits for another refit. Where
    /// that one is killed, what it started last (a restart, a statement) holds the lock until it ends.
    ///
    /// # Errors
    /// [`Error::Busy`] when it does not end, or [`Error::File`] where the directory cannot be made.
    pub fn to_change(system: &System) -> Result<Store, Error> {
        let dir = system.path(&format!("{PLACE}/lock"))?;
        let dir = dir.parent().expect("it has one").to_owned();
        let above = dir.parent().expect("it has one");
        make(above, 0o755)?;
        make(&dir, 0o700)?;
        let lock = lock(&dir, FlockOperation::NonBlockingLockExclusive, true)?;
        if let Some(file) = &lock {
            let kept = fcntl_setfd(file, FdFlags::empty());
            kept.map_err(|errno| FileError::at(&dir)(errno.into()))?;
        }
        Ok(Store { dir, _lock: lock })
    }

    /// To read them.
    ///
    /// # Errors
    /// [`Error::Busy`], or [`Error::File`] where they cannot be read.
    pub fn to_read(system: &System) -> Result<Store, Error> {
        let dir = system.path(&format!("{PLACE}/lock"))?;
        let dir = dir.parent().expect("it has one").to_owned();
        let lock = lock(&dir, FlockOperation::NonBlockingLockShared, false)?;
        Ok(Store { dir, _lock: lock })
    }

    fn file(&self, service: &str) -> PathBuf {
        // As in a URL: a name of one path component.
        let name = service.replace('%', "%25").replace('/', "%2F");
        self.dir.join(format!("{name}.json"))
    }

    /// The record of a service.
    ///
    /// # Errors
    /// [`Error::BadRecord`], [`Error::File`].
    pub fn load(&self, service: &str) -> Result<Option<Record>, Error> {
        let path = self.file(service);
        let Some(state) = FileState::read(&path)? else {
            return Ok(None);
        };
        let read: Result<Record, _> = serde_json::from_slice(&state.bytes());
        let bad = |reason: String| Error::BadRecord {
            path: path.clone(),
            reason,
        };
        let record = read.map_err(|error| bad(error.to_string()))?;
        if record.version != VERSION {
            return Err(bad(format!("its format is {}", record.version)));
        }
        Ok(Some(record))
    }

    /// All records, by service.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn all(&self) -> Result<Vec<Record>, Error> {
        let failed = FileError::at(&self.dir);
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(&failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(&failed)?.file_name();
            let name = name.to_string_lossy().into_owned();
            if let Some(service) = name.strip_suffix(".json") {
                names.push(service.replace("%2F", "/").replace("%25", "%"));
            }
        }
        names.sort();
        let loaded = names.iter().map(|service| self.load(service));
        Ok(loaded
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Writes a record, for good.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn save(&self, record: &Record) -> Result<(), Error> {
        Ok(self.stage(record)?.put()?)
    }

    /// Writes a record that replaces the one there when it is put in its place.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn stage(&self, record: &Record) -> Result<Staged, Error> {
        let path = self.file(&record.change.service);
        // What a killed process left.
        remove(&crate::file_state::temporary(&path))?;
        let mut text = serde_json::to_vec_pretty(record).expect("a record is JSON");
        text.push(b'\n');
        Ok(FileState::own(text).stage(&path)?)
    }

    /// Removes the record of a service, for good.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn forget(&self, service: &str) -> Result<(), Error> {
        let path = self.file(service);
        remove(&crate::file_state::temporary(&path))?;
        Ok(remove(&path)?)
    }
}

fn make(dir: &Path, mode: u32) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(dir)
        .map_err(FileError::at(dir))?;
    Ok(sync_directory(dir)?)
}

fn lock(dir: &Path, how: FlockOperation, make: bool) -> Result<Option<File>, Error> {
    let path = dir.join("lock");
    let opened = OpenOptions::new()
        .read(true)
        .write(make)
        .create(make)
        .mode(0o600)
        .open(&path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if !make && error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Error::NotRoot);
        }
        Err(cause) => return Err(FileError::at(&path)(cause).into()),
    };
    let began = Instant::now();
    loop {
        match flock(&file, how) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < WAIT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::Busy { waited: WAIT }),
            Err(errno) => return Err(FileError::at(&path)(errno.into()).into()),
        }
    }
}
