//! The witness of the whole machine, for as long as somebody watches.

use std::collections::BTreeMap;

use refit_session::{now_ns, printable};

use super::directory;
use super::reader::Reader;
use super::tracepoint::Which;
use super::waits::{ProcessSyncs, Waits};

/// Watches the durable calls of the whole machine. As root; dropping it takes the
/// kernel tens of milliseconds.
pub struct SyncWatch {
    reader: Reader,
    waits: Waits,
}

impl SyncWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// Why it cannot, for people: no root, an old kernel …
    pub fn begin() -> Result<SyncWatch, String> {
        Ok(SyncWatch {
            reader: Reader::begin(Which::CallsAndEnds)?,
            waits: Waits::default(),
        })
    }

    /// Takes what the kernel has written: call it at least ten times a second.
    pub fn tick(&mut self) {
        self.read_before(now_ns());
    }

    fn read_before(&mut self, before_ns: u64) {
        let tracepoints = self.reader.tracepoints.clone();
        let waits = &mut self.waits;
        self.reader.read_before(before_ns, |time, record| {
            waits.take_record(time, record, &tracepoints);
        });
    }

    /// What each process did since the last time, and the parents of those that began
    /// while it was watched.
    pub fn take(&mut self) -> (Vec<ProcessSyncs>, BTreeMap<u32, u32>) {
        let now = now_ns();
        self.read_before(now);
        let syncs = self.waits.take(now, &self.reader.tracepoints);
        (syncs, self.waits.take_parents())
    }

    /// Kinds of filesystem whose calls are seen.
    #[must_use]
    pub fn filesystems(&self) -> Vec<String> {
        self.reader.filesystems()
    }

    /// Records that the kernel had no room for: above 0 all counts are lower bounds.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.reader.rings.lost()
    }

    /// The path of a directory, if it still is there.
    #[must_use]
    pub fn path(device: u32, inode: u64) -> Option<String> {
        directory::path(device, inode).map(|path| printable(&path))
    }

    /// Leaves the closing to a process of its own, as for [`super::Witness`].
    pub fn close_in_background(self) {
        self.reader.rings.close_in_background();
    }
}
