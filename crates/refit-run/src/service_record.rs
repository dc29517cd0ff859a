//! What a service took, for a run in which it is loaded over a window.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Calls, MemorySample, OPENING, Pressure};

/// What a service took over the measured window.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceRecord {
    /// From its start until it was ready, in nanoseconds; 0 where it was kept from another run.
    pub ready_ns: u64,
    /// Processor time in programs, in nanoseconds.
    pub user_ns: u64,
    /// Processor time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Where both come from: `cgroup v2` or `processes`.
    pub cpu_source: String,
    /// Bytes written towards a disk; `None` where a process could not be read.
    pub written_bytes: Option<u64>,
    /// Waiting of the whole machine.
    pub pressure: Option<Pressure>,
    /// Calls of the window by executable and kind.
    #[cfg_attr(feature = "schema", schemars(schema_with = "calls_by_executable"))]
    pub calls: BTreeMap<String, BTreeMap<String, Calls>>,
    /// Memory over the window.
    pub memory: Vec<MemorySample>,
    /// Memory at its end.
    pub end: MemorySample,
    /// Memory that exists more than once then, as processes forked from one another wrote to pages that they shared
    /// (pagemap); `None` where a process could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_copies_bytes: Option<u64>,
    /// By how much less memory was available on the machine at the window's end
    /// than before the start; may be negative, as others use memory too.
    pub memory_used_bytes: Option<i64>,
}

impl ServiceRecord {
    /// With fewer samples than this a peak is only a lower bound: the real one may have been between two samples.
    const ENOUGH_SAMPLES: usize = 20;

    /// Sums over the calls of the window that wait for durability.
    #[must_use]
    pub fn syncs(&self, field: fn(&Calls) -> u64) -> u64 {
        let calls = self.calls.values().flatten();
        let syncs = calls.filter(|(name, _)| !OPENING.contains(&name.as_str()));
        syncs
            .map(|(_, calls)| field(calls))
            .fold(0, u64::saturating_add)
    }

    /// The highest sum of proportional memory; `None` with too few samples, or
    /// where a process could not be read.
    #[must_use]
    pub fn peak_pss_bytes(&self) -> Option<u64> {
        let is_whole = self.memory.iter().all(|sample| sample.unreadable == 0);
        if self.memory.len() < Self::ENOUGH_SAMPLES || !is_whole {
            return None;
        }
        self.memory.iter().map(MemorySample::pss_bytes).max()
    }
}

#[cfg(feature = "schema")]
fn calls_by_executable(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": crate::calls_by_kind(generator),
    })
}
