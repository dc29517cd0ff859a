//! Fresh copies of a directory: one for each run, all kept until the comparison
//! has ended. Deleting between runs would slow the next one: on a file system
//! with `discard` up to eight times.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use refit_run::with_first_signals;
use tempfile::TempDir;

use refit_recipe::open_up;

/// Copies of one directory, next to it, so that they lie on the same disk.
pub struct Copies {
    original: PathBuf,
    place: TempDir,
    made: usize,
    /// Size of the original.
    pub bytes: u64,
}

impl Copies {
    /// Nothing is copied yet.
    pub fn new(original: &Path) -> io::Result<Copies> {
        let original = original.canonicalize()?;
        let parent = original.parent().unwrap_or(Path::new("/"));
        Ok(Copies {
            bytes: size(&original)?,
            place: TempDir::with_prefix_in(".refit-copies-", parent)?,
            original,
            made: 0,
        })
    }

    /// Bytes that are free where the copies lie.
    pub fn free_bytes(&self) -> u64 {
        rustix::fs::statvfs(self.place.path()).map_or(0, |fs| fs.f_bavail * fs.f_frsize)
    }

    /// Makes one more.
    pub fn fresh(&mut self) -> io::Result<PathBuf> {
        let copy = self.place.path().join(self.made.to_string());
        self.made += 1;
        // cp knows owners, links, holes, attributes and reflinks.
        let mut cp = Command::new("cp");
        cp.args(["-a", "--reflink=auto", "--"])
            .arg(&self.original)
            .arg(&copy);
        let output = with_first_signals(&mut cp).output()?;
        if output.status.success() {
            Ok(copy)
        } else {
            Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ))
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        // What cannot be opened stays, as it would without this.
        let _ = open_up(self.place.path());
    }
}

/// Bytes of all files below it.
pub fn size(path: &Path) -> io::Result<u64> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() {
        return Ok(meta.len());
    }
    let mut sum = 4096;
    for entry in fs::read_dir(path)? {
        sum += size(&entry?.path())?;
    }
    Ok(sum)
}
