//! Why there is no verdict.

use std::io;
use std::path::PathBuf;

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

/// For `map_err`: what refit was about to do.
pub(crate) fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> CrashError {
    let what = what.into();
    |error| CrashError::Io { what, error }
}
