//! A directory for a private instance.

use std::fs::{DirBuilder, File, read_dir, remove_dir_all};
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use refit_run::{open_of, open_own};
use rustix::fs::{FlockOperation, flock};
use rustix::rand::{GetRandomFlags, getrandom};

const PREFIX: &str = "refit-schema-";

/// What is younger may not be locked yet.
const ABANDONED_AFTER: Duration = Duration::from_secs(600);

const LOCK: FlockOperation = FlockOperation::NonBlockingLockExclusive;

/// A directory that nobody but its owner may enter. It goes with this value; where this refit is killed, with a later one.
pub struct ScratchDirectory {
    path: PathBuf,
    /// Of the directory: who can take its lock sees that nobody uses it.
    _lock: File,
}

impl ScratchDirectory {
    /// One of this user and group; who is not root has none of others.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn new((uid, gid): (u32, u32)) -> Result<ScratchDirectory, String> {
        let failed = |error: io::Error| format!("a directory for the private instance: {error}");
        remove_abandoned(uid);
        let mut number = [0; 8];
        let random = getrandom(&mut number, GetRandomFlags::empty());
        random.map_err(|errno| failed(errno.into()))?;
        let name = format!("{PREFIX}{:016x}", u64::from_le_bytes(number));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let lock = open_own(&path).ok_or_else(|| failed(io::Error::other("it was taken away")))?;
        flock(&lock, LOCK).map_err(|errno| failed(errno.into()))?;
        let directory = ScratchDirectory { path, _lock: lock };
        if rustix::process::geteuid().is_root() {
            chown(directory.path(), Some(uid), Some(gid)).map_err(failed)?;
        }
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.path);
    }
}

/// Removes what a refit left that was killed, of this user's.
fn remove_abandoned(uid: u32) {
    let Ok(entries) = read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Some(lock) = open_of(&entry.path(), uid) else {
            continue;
        };
        let is_old = lock.metadata().is_ok_and(|meta| {
            let age = meta.modified().ok().and_then(|time| time.elapsed().ok());
            meta.is_dir() && age.is_some_and(|age| age > ABANDONED_AFTER)
        });
        if is_old && flock(&lock, LOCK).is_ok() {
            let _ = remove_dir_all(entry.path());
        }
    }
}
