//! What resident memory consists of while a program runs whose heap is counted (`--heap`).

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use refit_meter::{MEMORY_PARTS, MemoryPart, MemoryParts, huge_exposure, threads};
use refit_session::Collector;
use refit_session::heap::{HeapImage, HeapProcess};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::purge::{Candidate, PurgeAnswer};
use crate::tree_parts::each_counted;

/// The shortest time between two readings.
const PAUSE: Duration = Duration::from_millis(50);
/// A reading that took t of a processor is followed by a pause of this many t: at most 1 % of one core.
const SHARE: u32 = 100;

/// What memory consists of, at the reading at which it was the most.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryIdentity {
    /// Milliseconds from the start to this reading.
    pub at_ms: u64,
    /// Readings while the program ran: what was between them is not known.
    pub readings: u64,
    /// Processes whose heap is counted, at this reading.
    pub processes: u64,
    /// Threads of that of them with the most, at this reading.
    #[serde(default)]
    pub threads: u64,
    /// PSS of all these processes, by the kernel's sum.
    pub tree_pss_bytes: u64,
    /// That of them with the most resident memory.
    pub pid: u32,
    /// Its executable.
    pub executable: String,
    /// Its resident memory, by the kernel's sum, which is read before the terms and after them: where it changed, what is
    /// nearest to the terms between both.
    pub rss_bytes: u64,
    /// How much the kernel's sum changed meanwhile.
    #[serde(default)]
    pub rss_moved_bytes: u64,
    /// What that consists of.
    pub terms: Vec<IdentityTerm>,
    /// Resident memory that no term has; negative where the terms are more.
    pub unexplained_bytes: i64,
    /// Bytes requested of its live blocks, by its counters ...
    pub requested_bytes: u64,
    /// ... of which these were never touched, or are swapped out, and so are not resident.
    pub not_resident_bytes: u64,
    /// How much the counters changed while it was read.
    pub moved_bytes: u64,
    /// What transparent huge pages wherever they fit would add to its resident memory at most; `null` where that could
    /// not be read.
    #[serde(default)]
    pub huge_pages_could_add_bytes: Option<u64>,
}

/// One term of resident memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdentityTerm {
    /// `live`, `rounding`, `headers`, `fragments`, `retained`, `given back`, `stacks`, `mappings`, `files`, `file copies`, `shared` or
    /// `counting` (docs/memory.md).
    pub term: String,
    /// Resident memory of the process.
    pub rss_bytes: u64,
    /// PSS of all processes whose heap is counted.
    pub tree_pss_bytes: u64,
}

/// Reads the memory of a program's processes now and then, in a thread of its own: whoever waits for the program does
/// not wait for this.
#[derive(Debug)]
pub struct IdentityReader {
    began: Instant,
    due: Instant,
    reading: Option<JoinHandle<Reading>>,
    readings: u64,
    most: Option<MemoryIdentity>,
    /// `None`: it is not asked for.
    purge: Option<PurgeAnswer>,
}

/// What one reading found, and the time of a processor that it took; that of the forked copy is in it.
#[derive(Debug)]
struct Reading {
    memory: Option<MemoryIdentity>,
    purge: Option<PurgeAnswer>,
    cost: Duration,
}

impl IdentityReader {
    pub fn begin() -> IdentityReader {
        let began = Instant::now();
        IdentityReader {
            began,
            due: began,
            reading: None,
            readings: 0,
            most: None,
            purge: None,
        }
    }

    pub fn with_purge(self) -> IdentityReader {
        IdentityReader {
            purge: Some(PurgeAnswer::Unknown(
                "the program ended before it was measured".to_owned(),
            )),
            ..self
        }
    }

    /// Begins a reading when it is time for one.
    pub fn tick(&mut self, collector: &Collector) {
        if self.reading.as_ref().is_some_and(JoinHandle::is_finished) {
            self.take();
        }
        if self.reading.is_none() && Instant::now() >= self.due {
            let (mut collector, began) = (collector.clone(), self.began);
            let asked = self.purge.is_some();
            let reading = std::thread::Builder::new()
                .spawn(move || Reading::make(&mut collector, began, asked));
            // Without a thread there is no reading.
            self.reading = reading.ok();
        }
    }

    fn take(&mut self) {
        let Some(reading) = self.reading.take() else {
            return;
        };
        let Ok(reading) = reading.join() else {
            return;
        };
        self.due = Instant::now() + PAUSE.max(reading.cost.saturating_mul(SHARE));
        if let Some(found) = reading.purge {
            self.purge = self.purge.take().map(|before| before.and(found));
        }
        if let Some(found) = reading.memory {
            self.readings += 1;
            let most = self.most.as_ref().map_or(0, |most| most.tree_pss_bytes);
            if found.tree_pss_bytes >= most {
                self.most = Some(found);
            }
        }
    }

    /// The reading at which memory was the most; `None` when the program ended before there was one. And what the
    /// allocator could have given back, where that was asked for.
    pub fn finish(mut self) -> (Option<MemoryIdentity>, Option<PurgeAnswer>) {
        self.take();
        let readings = self.readings;
        let memory = self.most.map(|most| MemoryIdentity { readings, ..most });
        (memory, self.purge)
    }
}

impl Reading {
    fn make(collector: &mut Collector, began: Instant, asked: bool) -> Reading {
        let proc = Path::new("/proc");
        let images = collector.heap_images();
        let found = MemoryIdentity::of(proc, &images, began);
        let (memory, kept) = found.map_or((None, None), |(memory, kept)| {
            let memory = memory.moved_since(&collector.heap_images());
            (Some(memory), kept)
        });
        let read = processor_time_of_thread();
        let kept = kept.filter(|_| asked);
        let measured = kept.and_then(|candidate| candidate.measure(proc, collector));
        let (purge, copy) = measured.unzip();
        Reading {
            memory,
            purge,
            cost: read + copy.unwrap_or_default(),
        }
    }
}

impl MemoryIdentity {
    /// Of the processes of these images that live, and that of them whose allocator keeps the most. Those that may not be
    /// read are left out.
    fn of(
        proc: &Path,
        images: &[HeapImage],
        began: Instant,
    ) -> Option<(MemoryIdentity, Option<Candidate>)> {
        let mut identity = MemoryIdentity {
            at_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..MemoryIdentity::default()
        };
        let mut tree = [0.0; MEMORY_PARTS.len()];
        let mut largest: Option<MemoryParts> = None;
        let mut keeps: Option<Candidate> = None;
        let at_ms = identity.at_ms;
        each_counted(proc, images, |image, process, parts| {
            identity.processes += 1;
            let threads = threads(proc, process.pid).unwrap_or(1);
            identity.threads = identity.threads.max(threads);
            identity.tree_pss_bytes = identity.tree_pss_bytes.saturating_add(parts.pss_bytes);
            for (sum, (part, ..)) in tree.iter_mut().zip(MEMORY_PARTS) {
                *sum += parts.of(part).pss;
            }
            let retained = parts.of(MemoryPart::Retained).rss;
            if keeps
                .as_ref()
                .is_none_or(|most| retained > most.purge.retained_bytes)
            {
                keeps = Some(Candidate::new(image, process, parts, at_ms));
            }
            if largest
                .as_ref()
                .is_none_or(|most| parts.rss_bytes > most.rss_bytes)
            {
                identity.describe(image, process, parts);
                largest = Some(parts.clone());
            }
        });
        let largest = largest?;
        let exposure = huge_exposure(proc, identity.pid).ok();
        identity.huge_pages_could_add_bytes = exposure.map(|huge| huge.could_add_bytes);
        identity.terms = MEMORY_PARTS
            .iter()
            .zip(tree)
            .map(|((part, name, ..), tree)| IdentityTerm {
                term: (*name).to_owned(),
                rss_bytes: largest.of(*part).rss,
                tree_pss_bytes: tree as u64,
            })
            .collect();
        Some((identity, keeps))
    }

    fn describe(&mut self, image: &HeapImage, process: &HeapProcess, parts: &MemoryParts) {
        self.pid = process.pid;
        self.executable.clone_from(&image.executable);
        self.rss_bytes = parts.rss_bytes;
        self.rss_moved_bytes = parts.rss_moved_bytes;
        self.unexplained_bytes = parts.unexplained_bytes();
        self.requested_bytes = process.live.requested_bytes;
        let resident = parts.of(MemoryPart::Live).rss;
        self.not_resident_bytes = parts.requested_bytes.saturating_sub(resident);
    }

    fn moved_since(self, images: &[HeapImage]) -> MemoryIdentity {
        let mut processes = images.iter().flat_map(|image| &image.processes);
        let after = processes.find(|process| process.pid == self.pid);
        let moved = after.map_or(0, |process| {
            self.requested_bytes.abs_diff(process.live.requested_bytes)
        });
        MemoryIdentity {
            moved_bytes: moved,
            ..self
        }
    }
}

fn processor_time_of_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(time.tv_sec.unsigned_abs(), nanoseconds)
}
