//! The record of a watch: what `refit watch --json` stores.

use refit_meter::{Memory, Pressure};
use refit_session::heap::{HeapReport, UncountedHeap};
use serde::{Deserialize, Serialize};

/// Version of the JSON schema (docs/series.schema.json).
pub const SERIES_SCHEMA: u32 = 1;

/// The JSON Schema of a stored series (docs/series.schema.json).
#[cfg(feature = "schema")]
#[must_use]
pub fn schema() -> serde_json::Value {
    crate::schema::stored_schema::<Series>()
}

/// What was watched, over time.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Version of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SERIES_SCHEMA)))]
    pub schema: u32,
    /// Always `watch`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "watch")))]
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// When it began, in seconds since 1970 (UTC).
    pub started_unix: u64,
    /// What was to be watched, as it was typed; empty for the whole machine.
    pub target: Vec<String>,
    /// The time between two samples that was asked for.
    pub interval_ms: u64,
    /// Whether durable calls were seen.
    pub witness: Witnessing,
    /// What the samples are of.
    pub groups: Vec<Group>,
    /// In order of time.
    pub samples: Vec<Sample>,
    /// What watching took.
    pub cost: Cost,
    /// Of a command that was started and has ended: the most that its largest process,
    /// short-lived ones included, had resident (wait4(2)); `null` where that is not
    /// known.
    pub largest_process_bytes: Option<u64>,
    /// What transparent huge pages would add, read once at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub huge_pages: Vec<HugePages>,
    /// Of a command whose heap was to be counted: where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_coverage: Option<HeapCoverage>,
}

/// Whose heap was counted, until the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapCoverage {
    /// Processes whose heap was counted.
    pub processes: u64,
    /// Those that the library reached and did not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedHeap>,
}

impl From<HeapReport> for HeapCoverage {
    fn from(heap: HeapReport) -> HeapCoverage {
        HeapCoverage {
            processes: heap.processes(),
            uncounted: heap.uncounted,
        }
    }
}

impl Series {
    /// Adds what is live to the last sample.
    pub fn set_heap(&mut self, heap: Option<LiveHeap>) {
        if let Some(last) = self.samples.last_mut() {
            last.heap = heap;
        }
    }

    /// Whether every sample is of a group that there is: a file may hold anything.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut of_samples = self.samples.iter().flat_map(|sample| &sample.groups);
        of_samples.all(|one| one.group < self.groups.len())
            && self
                .huge_pages
                .iter()
                .all(|one| one.group < self.groups.len())
    }
}

/// What transparent huge pages wherever they fit would add to a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugePages {
    /// Index of its group.
    pub group: usize,
    /// The process of the group with the most memory.
    pub pid: u32,
    /// What they would add to its resident memory at most; `null` where the budget did not suffice to read it.
    pub could_add_bytes: Option<u64>,
}

/// Whether the kernel testifies to durable calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Witnessing {
    /// On these kinds of filesystem.
    Filesystems(Vec<String>),
    /// It does not, and why: all counts are unknown.
    Unavailable(String),
}

/// A service, or a tree of processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group {
    /// For people: the unit's, or its first process's.
    pub name: String,
    /// What holds it together.
    pub kind: GroupKind,
    /// The control group's path below its hierarchy.
    pub cgroup: Option<String>,
    /// The process at its top.
    pub pid: Option<u32>,
}

/// What holds the processes of a group together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// A control group: a unit of systemd, a container.
    Cgroup,
    /// They descend from one process.
    Tree,
    /// Threads of the kernel, which work for loop devices and libaio.
    Kernel,
}

/// All groups at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// Milliseconds since the watch began.
    pub at_ms: u64,
    /// Microseconds since the sample before, 0 for the first. Counts and waits are of
    /// this time.
    pub lasted_us: u64,
    /// In which some task of the whole machine waited; `null` without PSI.
    pub pressure: Option<Pressure>,
    /// Records for which the kernel had no room, since the beginning: above 0 all
    /// counts of durable calls are lower bounds.
    pub lost: u64,
    /// Groups that have processes, or had calls.
    pub groups: Vec<GroupSample>,
    /// With `--heap`: what is live in all processes of the command whose heap is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<LiveHeap>,
}

/// What malloc has given out and did not get back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveHeap {
    /// Processes whose heap is counted; what is live in others is not known.
    pub processes: u64,
    /// Bytes as they were requested.
    pub requested_bytes: u64,
    /// Bytes of these blocks that are usable, the allocator's rounding included.
    pub usable_bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// A group at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupSample {
    /// Index of the group.
    pub group: usize,
    /// Processes, without those that wait to be reaped.
    pub processes: u64,
    /// Resident memory, read at this moment; what processes share counts in each.
    pub rss_bytes: u64,
    /// Address space, of which most need not be memory.
    pub vsz_bytes: u64,
    /// The last readings of the processes' memory, summed; `null` where none was read.
    pub memory: Option<Memory>,
    /// The age of the oldest of these readings.
    pub memory_age_ms: u64,
    /// Processes whose memory was read since the sample before.
    pub fresh: u64,
    /// Processes whose memory was not read yet, to keep watching cheap: with any, the
    /// sums are lower bounds.
    pub unread: u64,
    /// Processes whose memory may not be read: with any, the sums are lower bounds.
    pub unreadable: u64,
    /// What the group's cgroup is charged with, caches of files included.
    pub charged_bytes: Option<u64>,
    /// The most that it was charged with since it was made.
    pub charged_peak_bytes: Option<u64>,
    /// The time in which some task of its cgroup waited; `null` without PSI of version 2.
    pub pressure: Option<Pressure>,
    /// Its durable calls; `null` where they are unknown.
    pub syncs: Option<Syncs>,
}

/// Durable calls since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Syncs {
    /// Calls that reached a filesystem.
    pub calls: u64,
    /// Those among them whose filesystem does not tell how long they took.
    pub untimed: u64,
    /// Microseconds that they waited, summed over threads.
    pub waited_us: u64,
    /// Microseconds in which at least one thread waited.
    pub busy_us: u64,
    /// By executable, the longest waits first; at most eight.
    pub callers: Vec<Caller>,
    /// By directory of the file, the most calls first; at most five.
    pub directories: Vec<SyncDirectory>,
}

/// Who made durable calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caller {
    /// The executable, or the process's name.
    pub executable: String,
    /// Calls.
    pub calls: u64,
    /// Microseconds that they waited, summed over threads.
    pub waited_us: u64,
}

/// A directory whose files were synced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SyncDirectory {
    /// Its path; `null` if it is gone, or not to be seen.
    pub path: Option<String>,
    /// Calls.
    pub calls: u64,
}

/// What watching took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Processor time of refit, in the kernel too.
    pub cpu_us: u64,
    /// The time in which it was used.
    pub wall_us: u64,
}

impl Cost {
    /// The share of one core; `None` before any time has passed.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.wall_us > 0).then(|| self.cpu_us as f64 / self.wall_us as f64)
    }
}
