//! Why the memory of a service is what it is: what grew with the operations of its load, and what it consists of at the
//! end of the window. From a run of its own, with the heap counted, that is not measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use refit_recipe::Instance;
use refit_run::tree::PROC;
use refit_run::{
    CallPath, HeapPaths, MEMORY_PARTS, MemoryPart, TreeParts, Watch, answer_within, fork_copies,
};
use refit_stats::{
    Growth, GrowthError, MemoryGrowth, MemoryPoint, Observation, Part, Trend, growth, memory_growth,
};
use serde::{Deserialize, Serialize};

use crate::memory_growth::least_that_matters;

/// Between two readings, at first; never shorter than the last one took.
const PAUSE: Duration = Duration::from_millis(10);
/// As soon as there are so many readings, every second one is dropped, and the pause doubles.
const MOST: usize = 400;
/// How long the stacks of allocations are unwound.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Two-sided error of the growth of what lies across the parts.
const OVERLAY_ALPHA: f64 = 0.025;

/// Which term is of which cause.
const CAUSES: [(MemoryPart, MemoryCause); 10] = [
    (MemoryPart::Live, MemoryCause::Live),
    (MemoryPart::Rounding, MemoryCause::Internal),
    (MemoryPart::Headers, MemoryCause::Internal),
    (MemoryPart::Fragments, MemoryCause::External),
    (MemoryPart::Retained, MemoryCause::Retained),
    (MemoryPart::Stacks, MemoryCause::Stacks),
    (MemoryPart::Mappings, MemoryCause::Mappings),
    (MemoryPart::Files, MemoryCause::Files),
    (MemoryPart::FileCopies, MemoryCause::Shared),
    (MemoryPart::Shared, MemoryCause::Shared),
];

/// Why memory is what it is, or why that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryAnswer {
    /// It is known.
    Known(MemoryReason),
    /// It is not.
    Unknown(String),
}

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MemoryCause {
    /// Blocks that are not freed.
    Live,
    /// Rounding and headers of live blocks.
    Internal,
    /// Free bytes on pages with a live block.
    External,
    /// Free pages that the allocator keeps.
    Retained,
    /// Stacks of threads.
    Stacks,
    /// Private memory that is not malloc's.
    Mappings,
    /// Pages of mapped files.
    Files,
    /// Shared memory, and private copies of files' pages.
    Shared,
    /// Copies of pages that processes shared after a fork.
    Copied,
    /// Parts of huge pages that nothing ever touched.
    HugePages,
}

impl MemoryCause {
    /// The part as which its growth is judged.
    #[must_use]
    pub fn part(self) -> Part {
        match self {
            MemoryCause::Live => Part::Live,
            MemoryCause::Internal => Part::Internal,
            MemoryCause::External => Part::External,
            MemoryCause::Retained => Part::Retained,
            MemoryCause::Stacks => Part::Stacks,
            MemoryCause::Mappings => Part::Anonymous,
            MemoryCause::Files => Part::File,
            MemoryCause::Shared => Part::Shared,
            MemoryCause::Copied => Part::Copied,
            MemoryCause::HugePages => Part::Untouched,
        }
    }
}

/// Why memory is what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryReason {
    /// What grows most, where something grows; else what there is most of at the end of the window (docs/memory.md).
    pub cause: MemoryCause,
    /// What grows with the operations, that by which the cause is named first; empty where nothing does for certain,
    /// `null` where that was not judged.
    pub growth: Option<Vec<GrowingCause>>,
    /// Why it was not judged; `null` where the recipe does not tell how many operations are done (`load.progress`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<String>,
    /// Processes whose heap is counted, at the end of the window.
    pub processes: u64,
    /// Their memory then (PSS), without what counting takes.
    pub pss_bytes: u64,
    /// What that consists of: the terms of docs/memory.md.
    pub terms: BTreeMap<String, u64>,
    /// Of that, what exists more than once since processes forked from one another wrote to pages that they shared.
    pub fork_copies_bytes: u64,
    /// Of that, parts of transparent huge pages that nothing ever touched.
    pub untouched_bytes: u64,
    /// Who allocated most of what is live then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_by: Option<CallPath>,
}

/// One part that grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrowingCause {
    /// Which.
    pub cause: MemoryCause,
    /// Bytes that an operation adds.
    pub bytes: f64,
    /// The interval of that.
    pub interval: [f64; 2],
    /// Its part of all that grows.
    pub share: f64,
}

/// Reads the memory of a service while it is loaded.
#[derive(Debug)]
pub struct MemoryReadings {
    due: Instant,
    pause: Duration,
    points: Vec<MemoryPoint>,
    /// At the same moments, what lies across the parts.
    overlays: Vec<Overlay>,
    /// The recipe tells how many operations are done.
    has_progress: bool,
}

impl MemoryReadings {
    pub fn new() -> MemoryReadings {
        MemoryReadings {
            due: Instant::now(),
            pause: PAUSE,
            points: Vec::new(),
            overlays: Vec::new(),
            has_progress: true,
        }
    }

    /// Reads when it is time for it.
    pub fn tick(&mut self, instance: &Instance, watch: &mut Watch) {
        let began = Instant::now();
        if began < self.due || !self.has_progress {
            return;
        }
        let Some(operations) = instance.operations_so_far() else {
            self.has_progress = false;
            return;
        };
        let parts = watch.tree_parts();
        if !parts.pids.is_empty() {
            self.push(point(operations, &parts), Overlay::read(&parts));
        }
        self.due = Instant::now() + self.pause.max(began.elapsed());
    }

    fn push(&mut self, point: MemoryPoint, overlay: Overlay) {
        self.points.push(point);
        self.overlays.push(overlay);
        if self.points.len() == MOST {
            keep_every_second(&mut self.points);
            keep_every_second(&mut self.overlays);
            self.pause *= 2;
        }
    }

    /// At the end of the window, while the service still runs. `None`: no heap was counted.
    pub fn reason(self, watch: &mut Watch) -> Option<MemoryReason> {
        let parts = watch.tree_parts();
        let mut reason = MemoryReason::of(&parts, Overlay::read(&parts))?;
        match self.growth() {
            None => {}
            Some(Ok(found)) => {
                let mut growth = growing(&found);
                growth.splice(..0, across(&found, &self.points, &self.overlays));
                if let Some(first) = growth.first() {
                    reason.cause = first.cause;
                }
                reason.growth = Some(growth);
            }
            Some(Err(why)) => reason.not_judged = Some(why),
        }
        reason.allocated_by = allocated_by(watch);
        Some(reason)
    }

    /// `None`: there is nothing to set it against.
    fn growth(&self) -> Option<Result<MemoryGrowth, String>> {
        if !self.has_progress {
            return None;
        }
        let found = memory_growth(&self.points, least_that_matters(&self.points));
        Some(found.map_err(|error| match error {
            GrowthError::TooFewSamples(count) => {
                format!("the window was too short: {count} readings")
            }
            GrowthError::NoOperations => "the count of operations did not rise".to_owned(),
            GrowthError::NotFinite | GrowthError::TooStrict => {
                "a reading is not a finite number".to_owned()
            }
        }))
    }
}

fn keep_every_second<T>(all: &mut Vec<T>) {
    let mut is_kept = false;
    all.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
}

/// Memory that is of several parts at once, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Overlay {
    /// What exists more than once since a fork.
    copies: u64,
    /// What of huge pages nothing ever touched.
    untouched: u64,
}

impl Overlay {
    fn read(tree: &TreeParts) -> Overlay {
        let proc = Path::new(PROC);
        Overlay {
            copies: fork_copies(proc, &tree.pids).unwrap_or(0),
            untouched: tree.untouched_bytes(proc),
        }
    }

    /// Each with the cause that it is.
    fn causes(self) -> [(MemoryCause, f64); 2] {
        [
            (MemoryCause::Copied, self.copies as f64),
            (MemoryCause::HugePages, self.untouched as f64),
        ]
    }
}

fn point(operations: f64, tree: &TreeParts) -> MemoryPoint {
    let mut parts: Vec<(Part, f64)> = Vec::new();
    for (term, cause) in CAUSES {
        let part = cause.part();
        match parts.iter_mut().find(|(known, _)| *known == part) {
            Some((_, sum)) => *sum += tree.of(term),
            None => parts.push((part, tree.of(term))),
        }
    }
    MemoryPoint { operations, parts }
}

impl MemoryReason {
    /// What there is, without growth.
    fn of(tree: &TreeParts, overlay: Overlay) -> Option<MemoryReason> {
        if tree.pids.is_empty() {
            return None;
        }
        let all: f64 = CAUSES.iter().map(|(term, _)| tree.of(*term)).sum();
        let sum = |cause: MemoryCause| -> f64 {
            let terms = CAUSES.iter().filter(|(_, of)| *of == cause);
            terms.map(|(term, _)| tree.of(*term)).sum()
        };
        let largest = CAUSES
            .iter()
            .map(|(_, cause)| *cause)
            .max_by(|a, b| sum(*a).total_cmp(&sum(*b)))?;
        // What lies across the terms is the cause where it is more than all else together.
        let mut overlays = overlay.causes().into_iter();
        let across = overlays.find(|(_, bytes)| *bytes > all / 2.0);
        let cause = across.map_or(largest, |(cause, _)| cause);
        let terms = MEMORY_PARTS
            .iter()
            .filter(|(part, ..)| *part != MemoryPart::Counting);
        Some(MemoryReason {
            cause,
            growth: None,
            not_judged: None,
            processes: tree.pids.len() as u64,
            pss_bytes: all as u64,
            terms: terms
                .map(|(part, name, ..)| ((*name).to_owned(), tree.of(*part) as u64))
                .collect(),
            fork_copies_bytes: overlay.copies,
            untouched_bytes: overlay.untouched,
            allocated_by: None,
        })
    }
}

/// The parts that grow, the steepest slope first.
fn growing(found: &MemoryGrowth) -> Vec<GrowingCause> {
    let named = found.parts.iter().filter_map(|one| {
        let (_, cause) = CAUSES.iter().find(|(_, cause)| cause.part() == one.part)?;
        Some(GrowingCause::of(*cause, &one.growth, one.share))
    });
    named.collect()
}

impl GrowingCause {
    fn of(cause: MemoryCause, growth: &Growth, share: f64) -> GrowingCause {
        GrowingCause {
            cause,
            bytes: growth.slope,
            interval: [growth.low, growth.high],
            share,
        }
    }
}

/// What lies across the parts and grows by more than half of what the whole does.
fn across(
    found: &MemoryGrowth,
    points: &[MemoryPoint],
    overlays: &[Overlay],
) -> Option<GrowingCause> {
    if found.whole.trend != Trend::Grows {
        return None;
    }
    let least = least_that_matters(points);
    let all = Overlay::default().causes().into_iter().enumerate();
    let mut grown = all.filter_map(|(at, (cause, _))| {
        let readings = points.iter().zip(overlays);
        let series: Vec<Observation> = readings
            .map(|(point, overlay)| Observation {
                operations: point.operations,
                value: overlay.causes()[at].1,
            })
            .collect();
        let grown = growth(&series, OVERLAY_ALPHA, least).ok()?;
        let share = grown.slope / found.whole.slope;
        let is_cause = grown.trend == Trend::Grows && share > 0.5;
        is_cause.then(|| GrowingCause::of(cause, &grown, share))
    });
    grown.next()
}

/// The stacks, and the files with their functions, are the program's and may have no end: they are read by a process of
/// its own, for a while.
fn allocated_by(watch: &Watch) -> Option<CallPath> {
    let read = || serde_json::to_vec(&watch.heap_paths()).unwrap_or_default();
    let answer = answer_within(TIMEOUT, read).ok()??;
    let all: Vec<HeapPaths> = serde_json::from_slice(&answer).ok()?;
    let paths = all.into_iter().flat_map(|one| one.paths);
    paths.max_by_key(|path| path.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a window of one second and of one of an hour.
    #[test]
    fn readings_lie_evenly_over_the_window_and_are_not_too_many() {
        for (seconds, least) in [(1, 90), (3600, MOST / 2)] {
            let mut readings = MemoryReadings::new();
            let mut now = Duration::ZERO;
            while now < Duration::from_secs(seconds) {
                let point = MemoryPoint {
                    operations: now.as_secs_f64(),
                    parts: Vec::new(),
                };
                readings.push(point, Overlay::default());
                now += readings.pause;
            }
            let count = readings.points.len();
            assert!((least..MOST).contains(&count), "{seconds} s: {count}");
            assert_eq!(readings.overlays.len(), count, "{seconds} s");
            let pause = readings.pause.as_secs_f64();
            for pair in readings.points.windows(2) {
                let gap = pair[1].operations - pair[0].operations;
                assert!(
                    gap > 0.99 * pause && gap < 2.01 * pause,
                    "{seconds} s: {gap}"
                );
            }
        }
    }
}
