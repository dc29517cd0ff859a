//! What refit's guardian counts of the calls that a seccomp filter sends to it:
//! plain numbers, passed from the guardian to the report.

use crate::image::Counter;
use crate::page::CALLS;

/// The calls of one executable.
#[derive(Clone, Debug, Default)]
pub struct ExecutableCounts {
    /// Its path as refit sees it; `?` stands for all that found no room.
    pub executable: String,
    /// Processes that made such calls.
    pub processes: u64,
    /// In the order of [`CALLS`]. Of what is real only the time is known for
    /// which the emulated disk held it.
    pub calls: [Counter; CALLS.len()],
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct GuardianCounts {
    /// By executable.
    pub executables: Vec<ExecutableCounts>,
    /// Bit i: rule i of the policy has decided a call.
    pub matched: u64,
    /// Calls that were real because their file could not be determined.
    pub path_unknown: u64,
    /// Opens and writes that the emulated disk does not delay.
    pub not_delayed: u64,
    /// Opens that stayed synchronous, as they could not be done exactly.
    pub left_synchronous: u64,
    /// Calls that were real as too many were under way.
    pub crowded: u64,
    /// Times that one process of the guardian took over from the other.
    pub takeovers: u64,
    /// Calls that were under way when that happened, and were real.
    pub released: u64,
    /// Programs that wanted a listener of their own.
    pub listeners_refused: u64,
}
