//! What was counted, by executable and kind of call: the records of a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::image::Counter;
use crate::page::CALLS;

/// The calls of one kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calls {
    /// Calls that asked for durability.
    pub seen: u64,
    /// Calls that were answered without the kernel's work.
    pub suppressed: u64,
    /// Calls that were passed on to the kernel. What is neither suppressed nor real failed its check.
    pub real: u64,
    /// Nanoseconds waited in the real ones.
    pub waited_ns: u64,
    /// Calls that the emulated disk made fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub injected: u64,
}

impl Calls {
    /// Adds the calls of another executable.
    pub fn add(&mut self, more: &Calls) {
        self.seen = self.seen.saturating_add(more.seen);
        self.suppressed = self.suppressed.saturating_add(more.suppressed);
        self.real = self.real.saturating_add(more.real);
        self.waited_ns = self.waited_ns.saturating_add(more.waited_ns);
        self.injected = self.injected.saturating_add(more.injected);
    }
}

/// For fields that serde leaves out.
#[must_use]
pub fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The schema of calls by kind; kinds that did not occur are left out.
#[cfg(feature = "schema")]
pub fn calls_by_kind(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "propertyNames": { "enum": CALLS },
        "additionalProperties": generator.subschema_for::<Calls>(),
    })
}

/// One executable of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecutableReport {
    /// Path, as the program saw it.
    pub executable: String,
    /// Processes that ran it.
    pub processes: u64,
    /// By kind of call; kinds that did not occur are left out.
    #[cfg_attr(feature = "schema", schemars(schema_with = "calls_by_kind"))]
    pub calls: BTreeMap<String, Calls>,
    /// The object that served malloc, `null` when unknown.
    pub malloc_object: Option<String>,
    /// It opened a library with RTLD_DEEPBIND, which hides a preloaded malloc.
    pub deepbind: bool,
    /// Where its calls waited 20 µs and more, the longest sum first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<DirectoryReport>,
}

/// A directory in whose files sync calls waited.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectoryReport {
    /// The (end of the) path.
    pub path: String,
    /// Calls that waited 20 µs and more.
    pub count: u64,
    /// Nanoseconds that they waited.
    pub waited_ns: u64,
}

/// A program that was started and not reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnreachedProgram {
    /// The (end of the) path of its executable.
    pub name: String,
    /// Why.
    pub reason: String,
    /// How often it was started.
    pub count: u64,
}

/// Calls that only show how a file was opened; they wait for nothing.
pub const OPENING: [&str; 4] = [
    "open(O_SYNC)",
    "open(O_DIRECT)",
    "fcntl(O_DIRECT)",
    "io_uring_setup",
];

pub(crate) fn calls(counters: &[Counter; CALLS.len()]) -> BTreeMap<String, Calls> {
    CALLS
        .iter()
        .zip(counters)
        .filter(|(_, counter)| counter.seen > 0)
        .map(
            |(
                name,
                Counter {
                    seen,
                    suppressed,
                    real,
                    waited_ns,
                    injected,
                },
            )| {
                let calls = Calls {
                    seen: *seen,
                    suppressed: *suppressed,
                    real: *real,
                    waited_ns: *waited_ns,
                    injected: *injected,
                };
                ((*name).to_owned(), calls)
            },
        )
        .collect()
}

pub(crate) fn directories(waits: &BTreeMap<String, (u64, u64)>) -> Vec<DirectoryReport> {
    let mut directories: Vec<DirectoryReport> = waits
        .iter()
        .map(|(path, (count, waited_ns))| DirectoryReport {
            path: path.clone(),
            count: *count,
            waited_ns: *waited_ns,
        })
        .collect();
    directories.sort_by_key(|directory| std::cmp::Reverse(directory.waited_ns));
    directories
}

/// A program may write any number into its own counters: nothing may overflow.
#[must_use]
pub fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Calls that wait for durability.
pub(crate) fn syncs(report: &ExecutableReport) -> u64 {
    let calls = report.calls.iter();
    let syncs = calls.filter(|(name, _)| !OPENING.contains(&name.as_str()));
    sum(syncs.map(|(_, calls)| calls.seen))
}
