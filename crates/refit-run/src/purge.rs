//! How much of what an allocator keeps it could give back: measured on a forked copy of the process, whose allocator gives
//! back what it can (`--purge`). The process itself keeps everything.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use refit_knobs::AllocatorKind;
use refit_meter::{
    MemoryPart, MemoryParts, anonymous_bytes, descendants, fork_obstacle, has_ended, threads,
};
use refit_session::Collector;
use refit_session::heap::{HeapImage, HeapProcess, PurgeRequest, PurgeState};
use serde::{Deserialize, Serialize};

use crate::serves_malloc::is_allocator;

/// How long a process may make no call of malloc or free that would answer ...
const TIMEOUT: Duration = Duration::from_secs(2);
/// ... of which so much counts between two looks: where refit got no processor for longer, or the whole machine stood
/// still, the process may not have run either.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// Copies of a process with several threads, one after the other: each may be made while another thread holds a lock of
/// the allocator's, and then it ends without an answer.
const MOST_COPIES: u32 = 5;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// What came of a purge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PurgeAnswer {
    /// It was measured.
    Measured(Purge),
    /// It was not, and why.
    Unknown(String),
}

/// What the allocator could give back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Purge {
    /// Milliseconds from the start to the reading before it.
    pub at_ms: u64,
    /// Times that it was measured; this is the one at which the most would have been given back.
    pub measured: u64,
    /// The process whose allocator kept the most then.
    pub pid: u32,
    /// Its executable.
    pub executable: String,
    /// Its resident memory.
    pub rss_bytes: u64,
    /// Of that, pages of the allocator's without a live block.
    pub retained_bytes: u64,
    /// And free bytes on pages with one.
    pub fragments_bytes: u64,
    /// Anonymous memory of the forked copy before it gave anything back: what `given_back_bytes` is a part of. The
    /// values above are of the reading before, and the process went on meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_bytes: Option<u64>,
    /// By how much the memory of a forked copy became less: glibc's malloc_trim(0), jemalloc's `arena.all.purge`,
    /// mimalloc's `mi_collect(true)`, tcmalloc's `ReleaseFreeMemory`.
    pub given_back_bytes: u64,
    /// Why it could not be measured after that, at the last attempt; `null` where it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_later: Option<String>,
}

/// A process whose allocator may keep something.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What is known of it.
    pub purge: Purge,
    /// The file of its image.
    pub file: (u64, u64),
    /// Its heap lies in memory that a copy would share.
    pub has_shared_blocks: bool,
    /// glibc serves malloc.
    pub is_glibc: bool,
}

impl PurgeAnswer {
    /// Of several the one at which the most would have been given back.
    pub(crate) fn and(self, found: PurgeAnswer) -> PurgeAnswer {
        match (self, found) {
            (PurgeAnswer::Measured(before), PurgeAnswer::Measured(found)) => {
                let measured = before.measured + 1;
                let most = match found.given_back_bytes >= before.given_back_bytes {
                    true => found,
                    false => before,
                };
                PurgeAnswer::Measured(Purge {
                    measured,
                    unknown_later: None,
                    ..most
                })
            }
            (PurgeAnswer::Measured(before), PurgeAnswer::Unknown(why)) => {
                PurgeAnswer::Measured(Purge {
                    unknown_later: Some(why),
                    ..before
                })
            }
            (_, found) => found,
        }
    }
}

impl Candidate {
    pub fn new(
        image: &HeapImage,
        process: &HeapProcess,
        parts: &MemoryParts,
        at_ms: u64,
    ) -> Candidate {
        Candidate {
            purge: Purge {
                at_ms,
                measured: 1,
                pid: process.pid,
                executable: image.executable.clone(),
                rss_bytes: parts.rss_bytes,
                retained_bytes: parts.of(MemoryPart::Retained).rss,
                fragments_bytes: parts.of(MemoryPart::Fragments).rss,
                copy_bytes: None,
                given_back_bytes: 0,
                unknown_later: None,
            },
            file: image.file,
            has_shared_blocks: parts.has_shared_blocks,
            is_glibc: is_allocator(&AllocatorKind::GLIBC, &image.malloc_object),
        }
    }

    /// Measures what it could give back, and how long there was a copy; `None` when the process has ended.
    pub fn measure(
        self,
        proc: &Path,
        collector: &mut Collector,
    ) -> Option<(PurgeAnswer, Duration)> {
        match self.given_back(proc, collector) {
            Ok(([copy_bytes, given_back_bytes], lived)) => {
                let purge = Purge {
                    copy_bytes: Some(copy_bytes),
                    given_back_bytes,
                    ..self.purge
                };
                Some((PurgeAnswer::Measured(purge), lived))
            }
            Err(_) if has_ended(proc, self.purge.pid) => None,
            Err(why) => Some((PurgeAnswer::Unknown(why), Duration::ZERO)),
        }
    }

    fn given_back(
        &self,
        proc: &Path,
        collector: &mut Collector,
    ) -> Result<([u64; 2], Duration), String> {
        let pid = self.purge.pid;
        if self.has_shared_blocks {
            return Err("its heap is shared memory".to_owned());
        }
        let mut copies = 1;
        loop {
            if let Some(why) = fork_obstacle(proc, pid, self.is_glibc) {
                return Err(why);
            }
            match self.copy(proc, collector) {
                Ok(None) if copies < MOST_COPIES && threads(proc, pid) > Some(1) => copies += 1,
                Ok(None) => return Err("its forked copy ended by itself".to_owned()),
                Ok(Some(found)) => return Ok(found),
                Err(why) => return Err(why),
            }
        }
    }

    /// What one copy has and what it gives back of that, and how long it lived; `None` when it ended before it had.
    fn copy(
        &self,
        proc: &Path,
        collector: &mut Collector,
    ) -> Result<Option<([u64; 2], Duration)>, String> {
        let pid = self.purge.pid;
        let in_file = |error: io::Error| format!("its file of counters: {error}");
        let request = collector.ask_for_purge(self.file, pid).map_err(in_file)?;
        let Some(PurgeState::Ready(copy)) = wait(&request, &PurgeState::Unmade, pid, proc)? else {
            return Err("it hardly calls malloc or free".to_owned());
        };
        let made = Instant::now();
        // The process may have written any pid.
        if !descendants(proc, pid).contains(&copy) {
            return Ok(None);
        }
        let read = || anonymous_bytes(proc, copy);
        let before = read();
        request.purge().map_err(in_file)?;
        let state = wait(&request, &PurgeState::Ready(copy), copy, proc)?;
        let after = read().filter(|_| state == Some(PurgeState::Purged));
        let given_back = before.zip(after);
        Ok(given_back
            .map(|(before, after)| ([before, before.saturating_sub(after)], made.elapsed())))
    }
}

/// The first other state than `now`; `None` when there is none in time, or who would tell it has ended.
fn wait(
    request: &PurgeRequest,
    now: &PurgeState,
    pid: u32,
    proc: &Path,
) -> Result<Option<PurgeState>, String> {
    let mut looked = Instant::now();
    let mut waited = Duration::ZERO;
    let mut is_over = false;
    while !is_over {
        waited += looked.elapsed().min(LONGEST_PAUSE);
        looked = Instant::now();
        is_over = has_ended(proc, pid) || *now == PurgeState::Unmade && waited > TIMEOUT;
        match request.state().map_err(|error| error.to_string())? {
            PurgeState::Refused(why) => return Err(why),
            state if state != *now => return Ok(Some(state)),
            _ => std::thread::sleep(PAUSE),
        }
    }
    Ok(None)
}
