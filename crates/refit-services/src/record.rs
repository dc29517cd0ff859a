//! What is remembered of a change.

use serde::{Deserialize, Serialize};

use crate::Change;

/// How far a change came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It is being made, or making it was interrupted.
    Applying,
    /// It was made, and was in effect.
    Applied,
    /// It is being taken back, or that was interrupted.
    Reverting,
}

/// One file below /var/lib/refit/changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Of the format.
    pub version: u32,
    /// What is changed.
    pub change: Change,
    /// How far it came.
    pub phase: Phase,
    /// When that began, in seconds since 1970.
    pub since_unix: u64,
}

/// Of [`Record::version`].
pub const VERSION: u32 = 1;
