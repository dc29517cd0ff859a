//! A program that was started, or why it could not be.

use std::io;
use std::time::Instant;

/// The program could not be exec'ed; `errno` of the exec.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(#[from] pub io::Error);

/// A program's process.
pub(super) struct Started {
    pub pid: libc::pid_t,
    /// Just before it was made.
    pub began: Instant,
    /// The image before the program's was the spawner's and not refit's.
    pub spawned: bool,
}
