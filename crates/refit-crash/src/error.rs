//! Why there is no verdict.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::RecordError;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    /// The machine lacks something.
    #[error("simulated power cuts cannot be made here: {}", .0.join("; "))]
    Missing(Vec<String>),
    /// The program cannot be prepared.
    #[error(transparent)]
    Launch(#[from] refit_run::LaunchError),
    /// A step of a recipe failed.
    #[error(transparent)]
    Instance(#[from] refit_recipe::InstanceError),
    /// A step failed.
    #[error("{what}: {error}")]
    Io {
        /// What refit was about to do.
        what: String,
        /// The system's error.
        error: io::Error,
    },
    /// A file or directory of the records cannot be written.
    #[error("cannot write {}: {error}\n  {NEXT}", path.display())]
    Unwritable {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A record cannot be used.
    #[error("{}: {error}", path.display())]
    Record {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        error: RecordError,
    },
    /// The whole message.
    #[error("{0}")]
    Refused(String),
}

/// What to do about records that cannot be written.
pub(crate) const NEXT: &str =
    "make room there, or name a new directory on another disk: --record DIR";

/// For `map_err`: what of the records refit was about to write.
pub(crate) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> CrashError + use<> {
    let path = path.to_owned();
    |error| CrashError::Unwritable { path, error }
}

/// For `map_err`: what refit was about to do.
pub(crate) fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> CrashError {
    let what = what.into();
    |error| CrashError::Io { what, error }
}
