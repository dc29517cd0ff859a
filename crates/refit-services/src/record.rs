//! What is remembered of a change.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::{Change, Error, LibraryFile, System};

/// How far a change came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It is being made, or making it was interrupted.
    Applying,
    /// It was made, and was in effect.
    Applied,
    /// It is being moved to where it stays, or that was interrupted.
    Confirming,
    /// It is being taken back, or that was interrupted.
    Reverting,
}

/// One file below /var/lib/refit/changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of the format.
    pub version: u32,
    /// What is changed.
    pub change: Change,
    /// How far it came.
    pub phase: Phase,
    /// When that began, in seconds since 1970.
    pub since_unix: u64,
    /// The change that was there before, in another form, as long as this one can go back to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Box<Record>>,
    /// What was placed for an earlier form, and is removed at the latest when the change is taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<LibraryFile>,
}

impl Record {
    /// Whether a change that nobody confirmed is gone from the files: after a reboot.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn is_taken_back(&self, system: &System) -> Result<bool, Error> {
        for edit in self.change.edits() {
            if system.state(&edit.path)? != edit.before {
                return Ok(false);
            }
        }
        Ok(self.change.trial && self.phase == Phase::Applied)
    }
}

/// Of [`Record::version`].
pub const VERSION: u32 = 1;

/// In seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
