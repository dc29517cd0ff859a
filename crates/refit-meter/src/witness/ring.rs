//! The events of all processors, and the memory that the kernel writes them to.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::sys::Tracefs;
use super::tracepoint::Tracepoint;
use crate::perf::sys::{self, Mapping};
use crate::perf::{processors, refused};

/// Bytes for the records of each processor: a power of two pages, which the kernel
/// allocates one by one: a larger ring makes the start slower.
const RING_BYTES: usize = 256 << 10;

/// How long the events of a run outlive it, idle.
const LINGER: Duration = Duration::from_millis(100);

/// What is watched.
pub struct Rings {
    /// One for each processor.
    mappings: Vec<Mapping>,
    /// By processor; those of processes after those of tracepoints.
    events: Vec<OwnedFd>,
    /// Held, so that its end comes after the program's.
    tracefs: Tracefs,
}

impl Rings {
    pub fn open(tracepoints: &[Tracepoint], tracefs: Tracefs) -> Result<Rings, String> {
        let processors = processors()?;
        let mut rings = Rings {
            mappings: Vec::new(),
            events: Vec::new(),
            tracefs,
        };
        for processor in processors {
            rings
                .open_on(processor, tracepoints)
                .map_err(|error| refused(&error))?;
        }
        Ok(rings)
    }

    fn open_on(&mut self, processor: i32, tracepoints: &[Tracepoint]) -> io::Result<()> {
        let processes = sys::watch_processes(processor)?;
        self.mappings.push(Mapping::new(&processes, RING_BYTES)?);
        for tracepoint in tracepoints {
            let event = sys::watch_tracepoint(processor, tracepoint.id)?;
            sys::redirect(&event, &processes)?;
            self.events.push(event);
        }
        self.events.push(processes);
        Ok(())
    }

    /// Hands over what was written since, processor by processor.
    pub fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for mapping in &mut self.mappings {
            take(mapping.read());
        }
    }

    /// Records that found no room, up to the last reading. The kernel is asked
    /// only where there may be any: each event is read on its own processor. Before
    /// Linux 6.0 it does not tell how many: then one for each event stands for them.
    pub fn lost(&self) -> u64 {
        if !self.mappings.iter().any(Mapping::was_full) {
            return 0;
        }
        let lost = self.events.iter().map(sys::losses);
        lost.map(|lost| lost.unwrap_or(1))
            .fold(0, u64::saturating_add)
    }

    /// Whether the kernel tells how many records found no room.
    pub fn counts_losses(&self) -> bool {
        self.events.iter().all(|event| sys::losses(event).is_some())
    }

    /// The kernel needs tens of milliseconds to close the last event of a tracepoint,
    /// and no other can be opened meanwhile. A process of its own closes them, a
    /// moment later, so that a run that starts soon after does not wait either.
    pub fn close_in_background(self) {
        let mappings = self.mappings.into_iter().map(Mapping::into_raw);
        sys::close_in_background(mappings.collect(), self.events, LINGER);
        // The process has a copy, and ends it in our place unless it was faster.
        drop(self.tracefs);
    }
}
