//! A directory for a private instance.

use std::fs::{DirBuilder, remove_dir_all};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};

/// A directory that nobody but its owner may enter. It goes with this value.
pub struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// One of this user and group; who is not root has none of others.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn new((uid, gid): (u32, u32)) -> Result<ScratchDirectory, String> {
        let failed =
            |error: std::io::Error| format!("a directory for the private instance: {error}");
        let mut number = [0; 8];
        let random = getrandom(&mut number, GetRandomFlags::empty());
        random.map_err(|errno| failed(errno.into()))?;
        let name = format!("refit-schema-{:016x}", u64::from_le_bytes(number));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let directory = ScratchDirectory(path);
        if rustix::process::geteuid().is_root() {
            chown(directory.path(), Some(uid), Some(gid)).map_err(failed)?;
        }
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
    }
}
