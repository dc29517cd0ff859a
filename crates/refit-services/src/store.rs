//! The records: one file for each service with a change, below one lock.
//!
//! What they say is done as root: a store that another user could have written is refused.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, OFlags, flock, fstat};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::exchange::Staged;
use crate::record::VERSION;
use crate::system::is_ours;
use crate::{Error, FileEdit, FileState, Place, Record, System};

const PLACE: &str = "/var/lib/refit/changes";

/// How long another refit is waited for: a few restarts of a service.
const WAIT: Duration = Duration::from_secs(30);

/// The records, locked.
pub struct Store {
    system: System,
    _lock: Option<OwnedFd>,
}

/// What is in the store.
#[derive(Default)]
pub struct Records {
    /// By service.
    pub readable: Vec<Record>,
    /// Why each of the others is not: what concerns another service goes on without it.
    pub unreadable: Vec<Error>,
}

impl Store {
    /// To change them. Nobody else reads or changes them meanwhile. Waits for another refit. Where
    /// that one is killed, what it started last (a restart, a statement) holds the lock until it ends.
    ///
    /// # Errors
    /// [`Error::Busy`] when it does not end, [`Error::OthersStore`], or [`Error::File`] where the directory
    /// cannot be made.
    pub fn to_change(system: &System) -> Result<Store, Error> {
        for (dir, mode) in [
            ("/var", 0o755),
            ("/var/lib", 0o755),
            ("/var/lib/refit", 0o755),
            (PLACE, 0o700),
        ] {
            system.place(dir)?.make_directory(mode)?;
        }
        let lock = lock(system, FlockOperation::NonBlockingLockExclusive, true)?;
        if let Some((file, place)) = &lock {
            let kept = fcntl_setfd(file, FdFlags::empty());
            kept.map_err(|errno| place.failed(errno))?;
        }
        Ok(Store::of(system, lock))
    }

    /// To read them.
    ///
    /// # Errors
    /// [`Error::Busy`], [`Error::OthersStore`], or [`Error::File`] where they cannot be read.
    pub fn to_read(system: &System) -> Result<Store, Error> {
        let lock = lock(system, FlockOperation::NonBlockingLockShared, false)?;
        Ok(Store::of(system, lock))
    }

    fn of(system: &System, lock: Option<(OwnedFd, Place)>) -> Store {
        Store {
            system: system.clone(),
            _lock: lock.map(|(file, _)| file),
        }
    }

    fn file(&self, service: &str) -> Result<Place, Error> {
        // As in a URL: a name of one path component.
        let name = service.replace('%', "%25").replace('/', "%2F");
        self.system.place(&format!("{PLACE}/{name}.json"))
    }

    /// The record of a service.
    ///
    /// # Errors
    /// [`Error::BadRecord`], [`Error::File`].
    pub fn load(&self, service: &str) -> Result<Option<Record>, Error> {
        let place = self.file(service)?;
        let path = place.path().to_owned();
        let Some(state) = place.state()? else {
            return Ok(None);
        };
        refuse_others(&place)?;
        let read: Result<Record, _> = serde_json::from_slice(&state.bytes());
        let bad = |reason: String| Error::BadRecord {
            path: path.clone(),
            reason,
        };
        let record = read.map_err(|error| bad(error.to_string()))?;
        if record.version != VERSION {
            return Err(bad(format!("its format is {}", record.version)));
        }
        let first = record.first.iter().flat_map(|first| first.change.edits());
        if let Some(edit) = record
            .change
            .edits()
            .chain(first)
            .find(|edit| gives_rights(edit))
        {
            return Err(bad(format!("it gives {} another owner or mode", edit.path)));
        }
        Ok(Some(record))
    }

    /// All records, by service.
    ///
    /// # Errors
    /// Where the directory cannot be read.
    pub fn all(&self) -> Result<Records, Error> {
        let names = self.system.names(PLACE)?;
        let names = names.iter().filter_map(|name| name.strip_suffix(".json"));
        let mut names: Vec<String> = names
            .map(|service| service.replace("%2F", "/").replace("%25", "%"))
            .collect();
        names.sort();
        let mut all = Records::default();
        for service in names {
            match self.load(&service) {
                Ok(record) => all.readable.extend(record),
                Err(error) => all.unreadable.push(error),
            }
        }
        Ok(all)
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
        let place = self.file(&record.change.service)?;
        // What a killed process left.
        place.remove_temporary()?;
        let mut text = serde_json::to_vec_pretty(record).expect("a record is JSON");
        text.push(b'\n');
        Ok(place.stage(&FileState::own(text))?)
    }

    /// Removes the record of a service, for good.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn forget(&self, service: &str) -> Result<(), Error> {
        let place = self.file(service)?;
        place.remove_temporary()?;
        Ok(place.remove()?)
    }
}

/// Whether an edit would give a file rights that no edit of refit's gives: it keeps a file's owner, mode and
/// attributes, and makes no file with a set-id bit.
fn gives_rights(edit: &FileEdit) -> bool {
    let states = || edit.before.iter().chain(&edit.after);
    let differs = match (&edit.before, &edit.after) {
        (Some(before), Some(after)) => !before.has_access_of(after),
        _ => false,
    };
    differs || states().any(FileState::is_set_id_program)
}

/// Refuses what another user owns or can write.
///
/// # Errors
/// [`Error::OthersStore`].
fn refuse_others(place: &Place) -> Result<(), Error> {
    match place.stat()? {
        Some(stat) if !is_ours(stat.st_uid) || stat.st_mode & 0o022 != 0 => {
            Err(Error::OthersStore {
                path: place.path().to_owned(),
                uid: stat.st_uid,
                mode: stat.st_mode & 0o7777,
            })
        }
        _ => Ok(()),
    }
}

/// `None`: there is no store, and none is to be made.
fn lock(
    system: &System,
    how: FlockOperation,
    make: bool,
) -> Result<Option<(OwnedFd, Place)>, Error> {
    for dir in ["/var/lib/refit", PLACE] {
        refuse_others(&system.place(dir)?)?;
    }
    let place = system.place(&format!("{PLACE}/lock"))?;
    let access = match make {
        true => OFlags::RDWR | OFlags::CREATE,
        false => OFlags::RDONLY,
    };
    let file = match place.open_any(access) {
        Ok(file) => file,
        Err(Errno::LOOP) => return Err(place.not_regular().into()),
        Err(Errno::NOENT) if !make => return Ok(None),
        Err(Errno::ACCESS | Errno::PERM) => return Err(Error::NotRoot),
        Err(errno) => return Err(place.failed(errno).into()),
    };
    let stat = fstat(&file).map_err(|errno| place.failed(errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(place.not_regular().into());
    }
    refuse_others(&place)?;
    let began = Instant::now();
    loop {
        match flock(&file, how) {
            Ok(()) => return Ok(Some((file, place))),
            Err(Errno::WOULDBLOCK) if began.elapsed() < WAIT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Errno::WOULDBLOCK) => return Err(Error::Busy { waited: WAIT }),
            Err(errno) => return Err(place.failed(errno).into()),
        }
    }
}
