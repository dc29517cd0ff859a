//! What is counted of the calls that come to the guardian.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use refit_session::guardian::{ExecutableCounts, GuardianCounts};
use refit_session::{CALLS, CountedCall, Counter, printable};

use crate::sys::shared_memory::shared;

/// Executables that have an entry of their own; the last entry is for all others.
const EXECUTABLES: usize = 128;
/// Threads and processes that are remembered as seen.
const SEEN: usize = 1 << 15;
/// Bytes of a path.
const PATH: usize = 256;

shared! {
    /// Counters of one kind of call, as in the session page.
    pub struct SharedCounter {
        /// Calls that came.
        pub seen: AtomicU64,
        /// Answered with 0.
        pub suppressed: AtomicU64,
        /// Let through.
        pub real: AtomicU64,
        /// Nanoseconds that they were held.
        pub waited_ns: AtomicU64,
        /// Failed by the emulated disk.
        pub injected: AtomicU64,
    }

    /// What one executable did.
    pub struct Executable {
        /// 0 free, 2 in use. Only the active process of the guardian writes.
        pub state: AtomicU32,
        /// Bytes of the path.
        pub length: AtomicU32,
        /// Its path as refit sees it.
        pub path: [AtomicU64; PATH / 8],
        /// Processes that made such a call.
        pub processes: AtomicU64,
        /// In the order of [`CALLS`].
        pub calls: [SharedCounter; CALLS.len()],
    }

    /// What is counted, for refit to read.
    pub struct TallyMemory {
        /// By executable.
        pub executables: [Executable; EXECUTABLES],
        /// A set: thread or process, executable.
        pub seen: [AtomicU64; SEEN],
        /// Bit i: rule i decided a call.
        pub matched: AtomicU64,
        /// Calls that were real because their file could not be determined.
        pub path_unknown: AtomicU64,
        /// Opens whose writes the emulated disk does not delay.
        pub not_delayed: AtomicU64,
        /// Opens that stayed synchronous, as they could not be done exactly.
        pub left_synchronous: AtomicU64,
        /// Calls that found no slot, and were real.
        pub crowded: AtomicU64,
        /// Times that one process of the guardian took over from the other.
        pub takeovers: AtomicU64,
        /// Calls that were received and not answered when that happened.
        pub released: AtomicU64,
        /// Programs that wanted a listener of their own.
        pub listeners_refused: AtomicU64,
    }
}

/// The active process's access to the counters; only one writes at a time.
pub struct Tally<'a> {
    shared: &'a TallyMemory,
    known: HashMap<Vec<u8>, usize>,
}

/// How one call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Let through.
    Real,
    /// Answered with 0.
    Suppressed,
    /// Failed by the emulated disk.
    Injected,
}

impl Tally<'_> {
    /// Continues where another process stopped.
    pub fn new(shared: &TallyMemory) -> Tally<'_> {
        let known = entries(shared).map(|(i, path)| (path, i)).collect();
        Tally { shared, known }
    }

    /// The entry of an executable.
    pub fn executable(&mut self, path: &[u8]) -> usize {
        let path = &path[path.len().saturating_sub(PATH)..];
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let free = self.known.len().min(EXECUTABLES - 1);
        let entry = &self.shared.executables[free];
        if free < EXECUTABLES - 1 {
            put_path(entry, path);
            self.known.insert(path.to_vec(), free);
        } else {
            put_path(entry, b"?");
        }
        free
    }

    /// A call of this kind came from this thread.
    pub fn seen(
        &self,
        executable: usize,
        call: CountedCall,
        tid: u32,
        process: impl Fn() -> Option<u32>,
    ) {
        let entry = &self.shared.executables[executable];
        entry.calls[call as usize].seen.fetch_add(1, Relaxed);
        // One set of threads and processes; a bit distinguishes them.
        let key = |id: u32, what: u64| what << 63 | (executable as u64 + 1) << 32 | u64::from(id);
        if self.is_new(key(tid, 0)) && self.is_new(key(process().unwrap_or(tid), 1)) {
            entry.processes.fetch_add(1, Relaxed);
        }
    }

    /// Whether the key is not in the set; then it is from now on. When there is
    /// no room near its place, it counts as known.
    fn is_new(&self, key: u64) -> bool {
        let start = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49) as usize;
        for i in 0..32 {
            let entry = &self.shared.seen[(start + i) % SEEN];
            match entry.load(Relaxed) {
                0 => {
                    entry.store(key, Relaxed);
                    return true;
                }
                there if there == key => return false,
                _ => {}
            }
        }
        false
    }

    /// Counts the end of a call.
    pub fn ended(&self, executable: usize, call: CountedCall, outcome: Outcome, waited_ns: u64) {
        let counter = &self.shared.executables[executable].calls[call as usize];
        let field = match outcome {
            Outcome::Real => &counter.real,
            Outcome::Suppressed => &counter.suppressed,
            Outcome::Injected => &counter.injected,
        };
        field.fetch_add(1, Relaxed);
        counter.waited_ns.fetch_add(waited_ns, Relaxed);
    }
}

fn put_path(entry: &Executable, path: &[u8]) {
    for (word, bytes) in entry.path.iter().zip(path.chunks(8)) {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(all), Relaxed);
    }
    entry.length.store(path.len() as u32, Relaxed);
    entry.state.store(2, std::sync::atomic::Ordering::Release);
}

fn entries(shared: &TallyMemory) -> impl Iterator<Item = (usize, Vec<u8>)> {
    let used = |entry: &&Executable| entry.state.load(std::sync::atomic::Ordering::Acquire) == 2;
    let entries = shared.executables.iter().take_while(used).enumerate();
    entries.map(|(i, entry)| {
        let words = entry.path.iter();
        let mut path: Vec<u8> = words
            .flat_map(|word| word.load(Relaxed).to_ne_bytes())
            .collect();
        path.truncate(entry.length.load(Relaxed) as usize);
        (i, path)
    })
}

/// All that was counted so far.
pub fn counts(shared: &TallyMemory) -> GuardianCounts {
    let load = |n: &AtomicU64| n.load(Relaxed);
    let executables = entries(shared).map(|(i, path)| {
        let entry = &shared.executables[i];
        ExecutableCounts {
            executable: printable(&String::from_utf8_lossy(&path)),
            processes: load(&entry.processes),
            calls: std::array::from_fn(|i| Counter {
                seen: load(&entry.calls[i].seen),
                suppressed: load(&entry.calls[i].suppressed),
                real: load(&entry.calls[i].real),
                waited_ns: load(&entry.calls[i].waited_ns),
                injected: load(&entry.calls[i].injected),
            }),
        }
    });
    GuardianCounts {
        executables: executables.collect(),
        matched: load(&shared.matched),
        path_unknown: load(&shared.path_unknown),
        not_delayed: load(&shared.not_delayed),
        left_synchronous: load(&shared.left_synchronous),
        crowded: load(&shared.crowded),
        takeovers: load(&shared.takeovers),
        released: load(&shared.released),
        listeners_refused: load(&shared.listeners_refused),
    }
}
