//! Where the parts of one trial lie.

use std::path::PathBuf;

/// The directories of one request.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Directory that holds the records of all modes.
    pub directory: PathBuf,
    /// Where the program and the checks find the file system.
    pub mount: PathBuf,
}

impl Paths {
    /// A copy of the recipe's folder.
    #[must_use]
    pub fn recipe(&self) -> PathBuf {
        self.directory.join("recipe")
    }

    /// A directory for what an instance has on tmpfs: it is empty after a cut.
    #[must_use]
    pub fn tmpfs(&self) -> PathBuf {
        self.directory.join("tmpfs")
    }

    /// Where the recorded disk is served.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.directory.join("disk")
    }

    /// The directory of one mode.
    #[must_use]
    pub fn mode(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The record of one mode.
    #[must_use]
    pub fn record(&self, name: &str) -> PathBuf {
        self.mode(name).join("record")
    }
}
