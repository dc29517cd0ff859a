//! What the processes of a tree have in memory.

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::process_memory::{kib, rollup_text, shown_in};
use crate::stat::Stat;
use crate::tree::at;

/// What the processes of a tree have in memory at one moment. PSS is the
/// proportional set size: a page that n processes map counts 1/n in each, so
/// the sum over a tree counts it once. Page tables and kernel stacks are in none
/// of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySample {
    /// Milliseconds since the window began.
    pub at_ms: u64,
    /// Processes whose memory is in the sums.
    pub processes: u64,
    /// Processes whose memory could not be read: with any, the sums are
    /// lower bounds.
    pub unreadable: u64,
    /// PSS of the main process.
    pub parent_pss_bytes: u64,
    /// PSS of all others.
    pub children_pss_bytes: u64,
    /// Resident memory; what processes share counts in each.
    pub rss_bytes: u64,
    /// Address space; most of it need not be memory.
    pub vsz_bytes: u64,
    /// Swapped out, shared proportionally. Not in PSS.
    pub swap_pss_bytes: u64,
    /// Microseconds that reading took.
    pub cost_us: u64,
}

impl MemorySample {
    /// PSS of the whole tree.
    #[must_use]
    pub fn pss_bytes(&self) -> u64 {
        self.parent_pss_bytes
            .saturating_add(self.children_pss_bytes)
    }
}

struct Rollup {
    rss: u64,
    pss: u64,
    swap_pss: u64,
}

fn rollup(text: &str) -> Option<Rollup> {
    Some(Rollup {
        rss: kib(text, "Rss")?,
        pss: kib(text, "Pss")?,
        swap_pss: kib(text, "SwapPss")?,
    })
}

/// Sums of /proc/PID/smaps_rollup (proc.rst; Linux 4.14) over `pids`, with the
/// PSS of `parent`, one of them, told apart. Processes that ended, and kernel
/// threads, have no memory. `at_ms` is the caller's.
///
/// While it is read, the kernel holds the lock under which the process maps and
/// unmaps, for a time that grows with its memory: see [`crate::MemorySampler`]. A
/// child between vfork(2) and exec has all of its parent's memory, which is then
/// counted a second time.
#[must_use]
pub fn memory_sample(proc: &Path, pids: &[u32], parent: u32) -> MemorySample {
    let began = Instant::now();
    let mut sample = MemorySample::default();
    for pid in pids {
        sample.add(proc, *pid, *pid == parent);
    }
    sample.cost_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    sample
}

impl MemorySample {
    fn add(&mut self, proc: &Path, pid: u32, is_parent: bool) {
        let directory = at(proc, pid);
        let Some(mut stat) = Stat::read(&directory) else {
            return;
        };
        let Some(shown) = shown_in(directory, &stat, pid) else {
            return;
        };
        let text = match rollup_text(&shown) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(_) => return self.unreadable += 1,
        };
        if stat.leader_ended() {
            stat.virtual_bytes = Stat::read(&shown).map_or(0, |thread| thread.virtual_bytes);
        }
        let Some(Rollup { rss, pss, swap_pss }) = rollup(&text) else {
            return self.unreadable += 1;
        };
        let part = match is_parent {
            true => &mut self.parent_pss_bytes,
            false => &mut self.children_pss_bytes,
        };
        *part = part.saturating_add(pss);
        self.rss_bytes = self.rss_bytes.saturating_add(rss);
        self.vsz_bytes = self.vsz_bytes.saturating_add(stat.virtual_bytes);
        self.swap_pss_bytes = self.swap_pss_bytes.saturating_add(swap_pss);
        self.processes += 1;
    }
}

/// Bytes that programs could still have without swapping, by the kernel's own
/// estimate (MemAvailable of /proc/meminfo, proc.rst). It moves with everything
/// on the machine.
#[must_use]
pub fn memory_available(proc: &Path) -> Option<u64> {
    kib(
        &fs::read_to_string(proc.join("meminfo")).ok()?,
        "MemAvailable",
    )
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
