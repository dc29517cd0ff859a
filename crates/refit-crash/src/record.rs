//! The record: every write, flush and discard that reached the disk, in order.
//!
//! A file of one header and then entries, each with its own check sum. Times are
//! CLOCK_MONOTONIC, in nanoseconds. The disk is served by one thread, so the
//! entries are in the order in which they took effect.

mod format;
mod reader;
mod writer;

use rustix::time::{ClockId, clock_gettime};

pub use format::{CHUNK, Entry, Kind, SECTOR};
#[cfg(test)]
pub(crate) use format::{ENTRY_HEADER, FILE_HEADER};
pub use reader::{Record, RecordError};
pub use writer::{OVER_CAP, RecordWriter};

/// The clock of all that is recorded: CLOCK_MONOTONIC in nanoseconds.
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests;
