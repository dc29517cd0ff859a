//! Which recipes run now: each comparison keeps a record of itself beside its instances, and a
//! lock while it lives.

use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use refit_run::open_own;
use refit_run::series::Instances;

use crate::instance_directory::{InstanceDirectory, TMPFS, is_abandoned, own_directories};

/// Name of the record. It lies in the comparison's directory on tmpfs, whose place does not depend
/// on `--dir`.
const RECORD: &str = "comparison";
/// More bytes of a record are not read: its path has 4096 at most (`PATH_MAX`), and so have the
/// lines before it.
const MOST: u64 = 2 * 4096;

impl InstanceDirectory {
    /// Writes the record of this comparison, by which [`running`] finds it.
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
