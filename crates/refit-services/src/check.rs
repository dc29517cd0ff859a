//! One look at whether a change is still as it was applied.

use serde::Serialize;

/// Where something can differ from what was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Files.
    File,
    /// What the service manager has read.
    Loaded,
    /// What the processes do.
    Effective,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Where.
    pub layer: Layer,
    /// What.
    pub key: String,
    /// As it was applied.
    pub expected: String,
    /// As it is.
    pub found: String,
    /// `None`: that cannot be told.
    pub holds: Option<bool>,
}

/// Whether anything is known to differ.
pub fn drifts(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.holds == Some(false))
}
