//! The memory of a process and its descendants, part by part, against the operations that they did: what a verdict
//! about growth rests on. Only what the kernel tells; nothing is stopped or changed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use refit_run::{MappingClass, SharedPages, descendants, has_ended, huge_exposure, mapped_memory};
use refit_stats::{GrowthError, MemoryGrowth, MemoryPoint, Part, memory_growth};
use rustix::time::{ClockId, clock_gettime};

/// The least growth that matters: so many bytes, and this part of all at the first sample.
const LEAST_BYTES: f64 = 1_048_576.0;
const LEAST_PART: f64 = 0.02;

/// Samples of a process tree.
#[derive(Debug)]
pub struct MemoryWatch {
    proc: PathBuf,
    root: u32,
    /// What each process shared when it was first seen.
    shared: BTreeMap<u32, SharedPages>,
    points: Vec<MemoryPoint>,
    stacks: Vec<u64>,
    unreadable: usize,
}

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
pub enum NoSample {
    /// The process is gone.
    #[error("process {0} has ended")]
    Ended(u32),
    /// It may not be read.
    #[error("the memory of process {pid} cannot be read: {source}")]
    Unreadable {
        /// Which.
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl MemoryWatch {
    /// Of a process and those that descend from it; nothing is read yet.
    #[must_use]
    pub fn new(root: u32) -> MemoryWatch {
        MemoryWatch {
            proc: PathBuf::from("/proc"),
            root,
            shared: BTreeMap::new(),
            points: Vec::new(),
            stacks: Vec::new(),
            unreadable: 0,
        }
    }

    /// Takes a sample, when so many operations were done; the processor time that it took.
    ///
    /// # Errors
    /// [`NoSample`]: of a descendant that cannot be read only the number is kept, see [`MemoryWatch::unreadable`].
    pub fn sample(&mut self, operations: f64) -> Result<Duration, NoSample> {
        let began = processor_time();
        let proc = self.proc.clone();
        let below = descendants(&proc, self.root);
        let mut parts = Parts::default();
        self.unreadable = 0;
        for (pid, is_root) in
            std::iter::once((self.root, true)).chain(below.iter().map(|pid| (*pid, false)))
        {
            // What the root shares with its own children is copied in them.
            let may_copy = !is_root || below.is_empty();
            match self.add(&proc, pid, may_copy, &mut parts) {
                Ok(()) => {}
                Err(_) if has_ended(&proc, pid) && is_root => return Err(NoSample::Ended(pid)),
                Err(_) if has_ended(&proc, pid) => {}
                Err(source) if is_root => return Err(NoSample::Unreadable { pid, source }),
                Err(_) => self.unreadable += 1,
            }
        }
        self.shared
            .retain(|pid, _| *pid == self.root || below.contains(pid));
        self.stacks.push(parts.stacks_mapped);
        self.points.push(parts.point(operations));
        Ok(processor_time().saturating_sub(began))
    }

    fn add(&mut self, proc: &Path, pid: u32, may_copy: bool, parts: &mut Parts) -> io::Result<()> {
        let memory = mapped_memory(proc, pid)?;
        let of = |class| memory.of(class).pss_bytes as f64;
        let huge = match memory.of(MappingClass::Anonymous).huge_bytes
            + memory.of(MappingClass::Heap).huge_bytes
        {
            0 => None,
            _ => Some(huge_exposure(proc, pid)?),
        };
        let copied = match self.shared.get(&pid) {
            Some(shared) if may_copy => shared.copied(proc, pid)?,
            Some(_) => Default::default(),
            None => {
                self.shared.insert(pid, SharedPages::of(proc, pid)?);
                Default::default()
            }
        };
        let untouched_heap = huge.map_or(0.0, |huge| huge.untouched_heap_bytes as f64);
        let untouched = huge.and_then(|huge| huge.untouched_bytes).unwrap_or(0) as f64;
        parts.heap += of(MappingClass::Heap) - copied.heap as f64 - untouched_heap;
        parts.anonymous += of(MappingClass::Anonymous) - copied.other as f64 - untouched;
        parts.copied += (copied.heap + copied.other) as f64;
        parts.untouched += untouched_heap + untouched;
        parts.stacks += of(MappingClass::Stack);
        parts.file += of(MappingClass::File);
        parts.shared += of(MappingClass::Shared) + of(MappingClass::FileCopy);
        parts.stacks_mapped += memory.of(MappingClass::Stack).mappings;
        Ok(())
    }

    /// All samples, in order.
    #[must_use]
    pub fn points(&self) -> &[MemoryPoint] {
        &self.points
    }

    /// Stacks of threads at the first and the last sample.
    #[must_use]
    pub fn stacks(&self) -> Option<(u64, u64)> {
        Some((*self.stacks.first()?, *self.stacks.last()?))
    }

    /// Descendants that could not be read at the last sample: with any, the parts are lower bounds.
    #[must_use]
    pub fn unreadable(&self) -> usize {
        self.unreadable
    }

    /// What grows.
    ///
    /// # Errors
    /// [`GrowthError`].
    pub fn result(&self) -> Result<MemoryGrowth, GrowthError> {
        memory_growth(&self.points, least_that_matters(&self.points))
    }
}

/// The least growth over these samples that matters, in bytes.
pub(crate) fn least_that_matters(points: &[MemoryPoint]) -> f64 {
    let first = points.first().map_or(0.0, |point| {
        point.parts.iter().map(|(_, bytes)| bytes).sum()
    });
    f64::max(LEAST_BYTES, LEAST_PART * first)
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Sums over a tree, in bytes.
#[derive(Default)]
struct Parts {
    heap: f64,
    anonymous: f64,
    stacks: f64,
    file: f64,
    shared: f64,
    copied: f64,
    untouched: f64,
    stacks_mapped: u64,
}

impl Parts {
    fn point(&self, operations: f64) -> MemoryPoint {
        MemoryPoint {
            operations,
            parts: vec![
                (Part::Heap, self.heap),
                (Part::Anonymous, self.anonymous),
                (Part::Stacks, self.stacks),
                (Part::File, self.file),
                (Part::Shared, self.shared),
                (Part::Copied, self.copied),
                (Part::Untouched, self.untouched),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_real_process_are_its_proportional_memory() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep is there");
        let stat =
            || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        while !stat().contains("(sleep) S") {
            std::thread::yield_now();
        }
        let mut watch = MemoryWatch::new(child.id());
        watch.sample(1.0).expect("it is ours");
        let memory = mapped_memory(Path::new("/proc"), child.id()).expect("it is ours");
        let sum: f64 = watch.points()[0].parts.iter().map(|(_, bytes)| bytes).sum();
        // Others map and unmap the same libraries meanwhile.
        assert!(
            (sum / memory.pss_bytes() as f64 - 1.0).abs() < 0.25,
            "{sum}"
        );
        assert_eq!((watch.stacks(), watch.unreadable()), (Some((1, 1)), 0));
        assert_eq!(watch.result(), Err(GrowthError::TooFewSamples(1)));
        child.kill().expect("it lives");
        child.wait().expect("it is ours");
        assert!(matches!(watch.sample(2.0), Err(NoSample::Ended(_))));
    }
}
