//! What the kernel itself saw: the durable calls of a run that reached a
//! filesystem, whatever interface asked for them.
//!
//! As root, through perf events of this process alone (perf_event_open(2)) on
//! the filesystems' own tracepoints. Nothing of the program changes, nothing is
//! made that could be left behind: the events are descriptors, and end with the
//! last process that holds them. A sample names the thread group of whoever
//! made the call, so that the kernel's io_uring workers count for the program
//! that they work for; records of fork, exec and exit say who belongs to it.
//!
//! Refused: the tracepoints of the sync system calls. As long as one of them is
//! enabled, every system call of the whole machine takes a slower path.

mod account;
mod directory;
mod lineage;
mod outside_syncs;
mod reader;
mod record;
mod ring;
mod sync_watch;
mod sys;
#[cfg(test)]
mod tests;
mod tracepoint;
mod waits;

use std::collections::BTreeMap;

use refit_session::now_ns;
use serde::{Deserialize, Serialize};

use account::Account;
use reader::Reader;
use tracepoint::Which;

pub use outside_syncs::OutsideSyncs;
pub use sync_watch::SyncWatch;
pub use waits::ProcessSyncs;

/// What the witness reports of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Testimony {
    /// It watched.
    Seen(Witnessed),
    /// It could not, and why.
    Unavailable(String),
}

/// The durable calls of a process tree that reached a filesystem.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Witnessed {
    /// Kinds of filesystem that were watched: those with an instance mounted
    /// anywhere on the machine when the run began.
    pub filesystems: Vec<String>,
    /// All of them. sync(2) counts once for each filesystem that it reaches, an
    /// fsync(2) of something that is on no such filesystem not at all.
    pub calls: u64,
    /// Records that the kernel had no room for, of the whole machine: above 0
    /// all counts are lower bounds.
    pub lost: u64,
    /// By who made them, the most first.
    pub callers: Vec<Caller>,
    /// Calls of the kernel's own threads meanwhile, for this program or another:
    /// they do the work of libaio's IOCB_CMD_FSYNC and of loop devices. Not among
    /// `calls`.
    pub by_kernel: u64,
    /// By the directory that holds the file, where the filesystem tells it
    /// (ext4), the most first.
    pub directories: Vec<Directory>,
    /// Of the calls that have a directory, those in none of `directories`.
    pub elsewhere: u64,
}

/// Who made durable calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caller {
    /// The executable as the process sees it, `null` if it is not known.
    pub executable: Option<String>,
    /// A kernel thread of its io_uring made them.
    pub io_uring_worker: bool,
    /// By tracepoint.
    pub events: BTreeMap<String, u64>,
    /// Their sum.
    pub calls: u64,
}

/// A directory, and the durable calls for the files in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Directory {
    /// Its path as refit sees it; `null` if it is gone, or not to be seen.
    pub path: Option<String>,
    /// Major and minor number of the filesystem's device.
    pub device: [u32; 2],
    /// Its inode.
    pub inode: u64,
    /// Durable calls for files in it.
    pub calls: u64,
}

/// A witness that watches. Dropping it takes the kernel tens of milliseconds: see
/// [`Witness::close_in_background`].
pub struct Witness {
    reader: Reader,
    account: Account,
}

impl Witness {
    /// Begins to watch the whole machine; what counts is decided by
    /// [`Witness::finish`]. Call it before the program is started.
    ///
    /// # Errors
    /// Why there is none here, for people: no root, an old kernel …
    pub fn begin() -> Result<Witness, String> {
        Ok(Witness {
            reader: Reader::begin(Which::Calls)?,
            account: Account::new(std::process::id()),
        })
    }

    /// Kinds of filesystem whose durable calls it counts.
    #[must_use]
    pub fn filesystems(&self) -> Vec<String> {
        self.reader.filesystems()
    }

    /// Whether the kernel tells how many records found no room.
    #[must_use]
    pub fn counts_losses(&self) -> bool {
        self.reader.rings.counts_losses()
    }

    /// Takes what the kernel has written. Its room is for about 3,500 calls on
    /// each processor from one tick to the next.
    pub fn tick(&mut self) {
        // A record is written a moment after its time was taken, and the rings
        // are read one after the other: what is older than this is complete.
        self.take_records_before(now_ns());
    }

    fn take_records_before(&mut self, before_ns: u64) {
        let account = &mut self.account;
        self.reader
            .read_before(before_ns, |_, record| account.take(record));
    }

    /// What the tree below `leader`, a process that this one started, did since
    /// the beginning.
    #[must_use]
    pub fn finish(&mut self, leader: u32) -> Witnessed {
        self.take_records_before(u64::MAX);
        let mut seen = self.account.of(leader, &self.reader.tracepoints);
        seen.filesystems = self.reader.filesystems();
        seen.lost = self.reader.rings.lost();
        seen
    }

    /// Leaves the closing to a process of its own, which ends soon: the kernel
    /// waits until no processor can still be inside a tracepoint (2 × 36 ms for
    /// ext4), and the user need not.
    pub fn close_in_background(self) {
        self.reader.rings.close_in_background();
    }
}
