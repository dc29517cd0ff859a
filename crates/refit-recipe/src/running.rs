//! Which recipes run now: each comparison keeps a record of itself beside its instances, and a
//! lock while it lives.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use refit_run::open_own;
use refit_run::series::Instances;

use crate::instance_directory::{InstanceDirectory, TMPFS, is_abandoned, own_directories};

/// In the directory on tmpfs, which is at the same place whatever `--dir` was.
const RECORD: &str = "comparison";
/// A path is not longer (`PATH_MAX`), and neither is what stands before it.
const MOST: u64 = 2 * 4096;

impl InstanceDirectory {
    /// Tells [`running`] of it.
    pub(crate) fn record(&self, recipe: &str) -> io::Result<()> {
        let kind = if self.tree.has_cgroup() {
            "cgroup"
        } else {
            "tree"
        };
        let pid = std::process::id();
        let mut text = format!("{recipe}\n{pid}\n{kind}\n").into_bytes();
        text.extend(self.path.as_os_str().as_bytes());
        fs::write(self.tmpfs.join(RECORD), text)
    }
}

/// The instances that refits of this user run now.
#[must_use]
pub fn running() -> Vec<Instances> {
    let directories = own_directories(Path::new(TMPFS));
    let mut found: Vec<Instances> = directories
        .filter_map(|(name, path)| read(name, &path))
        .collect();
    found.sort_by_key(|one| one.refit);
    found
}

fn read(directory: String, tmpfs: &Path) -> Option<Instances> {
    let mut bytes = Vec::new();
    let record = open_own(&tmpfs.join(RECORD))?;
    record.take(MOST).read_to_end(&mut bytes).ok()?;
    let mut parts = bytes.splitn(4, |byte| *byte == b'\n');
    let mut text = || String::from_utf8(parts.next()?.to_vec()).ok();
    let (recipe, refit, kind) = (text()?, text()?.parse().ok()?, text()?);
    let main = PathBuf::from(std::ffi::OsString::from_vec(parts.next()?.to_vec()));
    if is_abandoned(&main, &main) {
        return None;
    }
    Some(Instances {
        recipe,
        refit,
        cgroup: (kind == "cgroup").then_some(directory),
    })
}
