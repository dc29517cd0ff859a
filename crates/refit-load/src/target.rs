//! Where a server listens.

use std::fmt;
use std::path::PathBuf;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A port of 127.0.0.1.
    Tcp(u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Tcp(port) => write!(f, "127.0.0.1:{port}"),
            Target::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
