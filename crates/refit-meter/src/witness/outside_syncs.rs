//! Who else flushed a filesystem: sync(2) and syncfs(2) of processes outside.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::directory;
use super::reader::Reader;
use super::record::Record;
use super::tracepoint::Which;

/// The number that the kernel reports for a process outside of the reader's pid namespace
/// (kernel/events/core.c, `perf_event_pid_type`).
const OUTSIDE: u32 = 0;

/// Counts the calls of sync(2) and syncfs(2) that reach one filesystem from outside
/// of this process's pid namespace. As root.
pub struct OutsideSyncs {
    reader: Reader,
    /// Major and minor number of the filesystem's device.
    device: [u32; 2],
    /// Events by tracepoint.
    events: BTreeMap<usize, u64>,
}

impl OutsideSyncs {
    /// Begins to watch the filesystem that `path` is on.
    ///
    /// # Errors
    /// Why it cannot, for people.
    pub fn begin(path: &Path) -> Result<OutsideSyncs, String> {
        let device = fs::metadata(path)
            .map_err(|error: io::Error| format!("{}: {error}", path.display()))?
            .dev();
        Ok(OutsideSyncs {
            reader: Reader::begin(Which::Calls)?,
            device: [rustix::fs::major(device), rustix::fs::minor(device)],
            events: BTreeMap::new(),
        })
    }

    /// Takes what the kernel has written: call it at least ten times a second.
    pub fn tick(&mut self) {
        let (events, device) = (&mut self.events, self.device);
        let tracepoints = self.reader.tracepoints.clone();
        self.reader.read_before(u64::MAX, |_, record| {
            let Record::Called {
                process: OUTSIDE,
                event,
                ..
            } = record
            else {
                return;
            };
            // btrfs does not tell the device: any btrfs counts.
            let is_here = event
                .device
                .is_none_or(|one| directory::numbers(one) == device);
            if is_here && tracepoints[event.tracepoint].is_of_filesystem() {
                *events.entry(event.tracepoint).or_default() += 1;
            }
        });
    }

    /// The calls since the beginning. Records that the kernel had no room for are not
    /// among them.
    #[must_use]
    pub fn finish(mut self) -> u64 {
        self.tick();
        let calls =
            |(index, events): (&usize, &u64)| self.reader.tracepoints[*index].calls(*events);
        self.events.iter().map(calls).sum()
    }
}
