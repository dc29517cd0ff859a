//! The metrics that refit measures itself: one table, with all that is known of each. Recipes take their names from
//! here, comparisons their values, and reports their units and places.

use serde::{Deserialize, Serialize};

use crate::{Calls, ExecutableHeap, HeapSize, MemorySample, Run, ServiceRecord, Usage};

/// How a metric is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A duration in nanoseconds.
    Nanoseconds,
    /// A duration in microseconds.
    Microseconds,
    /// A size in bytes.
    Bytes,
    /// A number of things.
    Count,
    /// Things in a second.
    PerSecond,
    /// Parts of a hundred.
    Percent,
}

/// What a metric is, hence which side is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MeasureRecord {
    /// A time, less is better.
    Duration,
    /// Work done per time, more is better.
    Rate,
    /// A cost that is not time, less is better.
    Amount,
}

/// How exact its values are, hence which ratios they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Measured as it is.
    Exact,
    /// Accounted in steps: values below the unit's least are counted as that much.
    Stepped,
    /// Stepped, and counted by refit in the program: unknown of a run without refit.
    Counted,
    /// A difference, of either sign: it has no ratio, hence no effect.
    Difference,
}

/// Where its value is read.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// In the run of a program.
    Run(fn(&Run) -> Option<f64>),
    /// In the measured window of a service.
    Service(fn(&ServiceRecord) -> Option<f64>),
    /// Operations of a load in a second of its window.
    Load,
}

/// Where it is told beside the main metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the line of what else changed, in this order.
    Line(u8),
    /// Among the costs of a gain.
    Cost,
    /// In a column of its own, under this title.
    Column(&'static str),
}

/// A metric that refit measures itself.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    /// Name in gates, tables, recipes and JSON.
    pub name: &'static str,
    /// How its verdict is worded, and which side is the better one.
    pub measure: MeasureRecord,
    /// How its values are printed.
    pub unit: Unit,
    /// How exact they are.
    pub precision: Precision,
    /// Where it is told beside the main metric.
    pub places: &'static [Place],
    /// What it is, for people.
    pub about: &'static str,
    /// Where its value is read.
    pub source: Source,
}

/// Name of the metric that a load has whatever it is.
pub const RATE: &str = "rate";

macro_rules! metric {
    ($name:expr, $measure:ident, $unit:ident, $precision:ident, $places:expr, $about:literal, $source:expr) => {
        BuiltIn {
            name: $name,
            measure: MeasureRecord::$measure,
            unit: Unit::$unit,
            precision: Precision::$precision,
            places: &$places,
            about: $about,
            source: $source,
        }
    };
}

use Place::{Column, Cost, Line};
use Source::{Load, Run as Of, Service};

/// Every metric of a command. The first is the main metric of such a comparison.
#[rustfmt::skip]
pub const OF_COMMANDS: &[BuiltIn] = &[
    metric!("wall", Duration, Nanoseconds, Exact, [], "from start to end", Of(|r| Some(r.metrics.wall_ns as f64))),
    metric!("cpu", Amount, Nanoseconds, Exact, [Line(3), Cost], "processor time (waited-for processes)", Of(|r| Some(usage(r).processor_ns() as f64))),
    metric!("user", Amount, Nanoseconds, Stepped, [Line(4)], "processor time in programs (waited-for processes)", Of(|r| usage(r).halves().map(|[user, _]| user as f64))),
    metric!("system", Amount, Nanoseconds, Stepped, [Line(5)], "processor time in the kernel (waited-for processes)", Of(|r| usage(r).halves().map(|[_, system]| system as f64))),
    metric!("max-rss", Amount, Bytes, Stepped, [Line(6), Cost, Column("max RSS")], "resident memory of the largest process (wait4)", Of(|r| usage(r).max_rss_bytes.map(|n| n as f64))),
    metric!("heap-requested", Amount, Bytes, Stepped, [], "live bytes as requested, at the peak of the largest heap (--heap)", Of(|r| known_peak(r).map(|peak| peak.requested_bytes as f64))),
    metric!("heap-usable", Amount, Bytes, Stepped, [], "the same with the allocator's rounding", Of(|r| heap(r).map(|one| one.largest.peak.usable_bytes as f64))),
    metric!("heap-rounding", Amount, Bytes, Stepped, [], "usable but not requested, at the same moment", Of(|r| known_peak(r).map(|peak| peak.internal_bytes() as f64))),
    metric!("heap-left", Amount, Bytes, Stepped, [], "live bytes as requested, at the end of that process", Of(|r| heap(r).map(|one| one.largest.end.requested_bytes as f64))),
    metric!("allocations", Amount, Count, Stepped, [], "blocks that malloc gave out, in all processes (--heap)", Of(|r| r.heap.as_ref().map(|heap| heap.allocations() as f64))),
    metric!("minor-faults", Amount, Count, Stepped, [Line(7)], "page faults without I/O", Of(|r| Some(usage(r).minor_faults as f64))),
    metric!("major-faults", Amount, Count, Stepped, [Line(8)], "page faults with I/O", Of(|r| Some(usage(r).major_faults as f64))),
    metric!("voluntary-switches", Amount, Count, Stepped, [], "context switches to wait", Of(|r| Some(usage(r).voluntary_switches as f64))),
    metric!("involuntary-switches", Amount, Count, Stepped, [], "context switches by the kernel", Of(|r| Some(usage(r).involuntary_switches as f64))),
    metric!("written", Amount, Bytes, Stepped, [Line(2)], "bytes written towards a disk", Of(|r| Some(usage(r).written_bytes as f64))),
    metric!("psi-cpu", Amount, Microseconds, Stepped, [], "tasks of the machine waited for a processor", Of(|r| r.metrics.pressure.map(|p| p.cpu_us as f64))),
    metric!("psi-io", Amount, Microseconds, Stepped, [], "tasks of the machine waited for I/O", Of(|r| r.metrics.pressure.map(|p| p.io_us as f64))),
    metric!("psi-memory", Amount, Microseconds, Stepped, [], "tasks of the machine waited for memory", Of(|r| r.metrics.pressure.map(|p| p.memory_us as f64))),
    metric!("syncs", Amount, Count, Counted, [Line(1)], "real sync calls (refit's counters)", Of(|r| syncs(r, |c| c.real))),
    metric!("sync-wait", Amount, Nanoseconds, Counted, [], "time in real sync calls (refit's counters)", Of(|r| syncs(r, |c| c.waited_ns))),
];

/// Metrics of any recipe: of its load.
#[rustfmt::skip]
pub const OF_LOADS: &[BuiltIn] = &[
    metric!(RATE, Rate, PerSecond, Exact, [Line(0), Cost, Column("rate")], "operations in a second of the measured window", Load),
];

/// Metrics of a recipe's service: each is of the measured window, but for `ready`.
#[rustfmt::skip]
pub const OF_SERVICES: &[BuiltIn] = &[
    metric!("ready", Duration, Nanoseconds, Exact, [], "from the start until the service was ready", Service(|s| Some(s.ready_ns as f64).filter(|ns| *ns > 0.0))),
    metric!("cpu", Amount, Nanoseconds, Stepped, [Line(3), Cost], "processor time of the service", Service(|s| Some(s.user_ns.saturating_add(s.system_ns) as f64))),
    metric!("written", Amount, Bytes, Stepped, [Line(4)], "bytes that the service wrote towards a disk (/proc/PID/io)", Service(|s| s.written_bytes.map(|n| n as f64))),
    metric!("psi-cpu", Amount, Microseconds, Stepped, [], "tasks of the machine waited for a processor", Service(|s| s.pressure.map(|p| p.cpu_us as f64))),
    metric!("psi-io", Amount, Microseconds, Stepped, [Line(5)], "tasks of the machine waited for I/O", Service(|s| s.pressure.map(|p| p.io_us as f64))),
    metric!("psi-memory", Amount, Microseconds, Stepped, [], "tasks of the machine waited for memory", Service(|s| s.pressure.map(|p| p.memory_us as f64))),
    metric!("syncs", Amount, Count, Counted, [Line(1)], "real sync calls (refit's counters)", Service(|s| Some(s.syncs(|c| c.real) as f64))),
    metric!("sync-wait", Amount, Nanoseconds, Counted, [Line(2)], "time in real sync calls (refit's counters)", Service(|s| Some(s.syncs(|c| c.waited_ns) as f64))),
    metric!("pss", Amount, Bytes, Stepped, [Line(6), Cost, Column("PSS")], "proportional memory of the whole tree at the window's end (smaps_rollup)", Service(|s| end(s).map(|m| m.pss_bytes() as f64))),
    metric!("pss-parent", Amount, Bytes, Stepped, [], "… of the main process", Service(|s| end(s).map(|m| m.parent_pss_bytes as f64))),
    metric!("pss-children", Amount, Bytes, Stepped, [], "… of all others", Service(|s| end(s).map(|m| m.children_pss_bytes as f64))),
    metric!("pss-peak", Amount, Bytes, Stepped, [], "the highest of at least 20 samples", Service(|s| s.peak_pss_bytes().map(|n| n as f64))),
    metric!("rss", Amount, Bytes, Stepped, [], "resident memory at the window's end, shared pages counted in each process", Service(|s| end(s).map(|m| m.rss_bytes as f64))),
    metric!("vsz", Amount, Bytes, Stepped, [], "address space at the window's end", Service(|s| end(s).map(|m| m.vsz_bytes as f64))),
    metric!("fork-copies", Amount, Bytes, Stepped, [], "copies of pages that were shared after a fork, at the window's end (pagemap)", Service(|s| s.fork_copies_bytes.map(|n| n as f64))),
    metric!("memory-used", Amount, Bytes, Difference, [], "how much less was available on the machine than before the start", Service(|s| s.memory_used_bytes.map(|n| n as f64))),
];

/// What refit measures in the runs of a recipe with a service, or of one without, besides the rate of its load.
#[must_use]
pub fn built_in(is_service: bool) -> &'static [BuiltIn] {
    if is_service { OF_SERVICES } else { OF_COMMANDS }
}

impl BuiltIn {
    /// Whether an answer names it as a cost where a variant makes it worse.
    #[must_use]
    pub fn is_cost(&self) -> bool {
        self.places.contains(&Cost)
    }

    /// Its place in the line of what else changed.
    #[must_use]
    pub fn line(&self) -> Option<u8> {
        self.places.iter().find_map(|place| match place {
            Line(nth) => Some(*nth),
            _ => None,
        })
    }

    /// The title of its column.
    #[must_use]
    pub fn column(&self) -> Option<&'static str> {
        self.places.iter().find_map(|place| match place {
            Column(title) => Some(*title),
            _ => None,
        })
    }
}

impl Unit {
    /// Values below this are counted as this much, so that a ratio to nothing
    /// exists and is not made of the clock's steps. (The kernel divides
    /// processor time by ticks of some milliseconds.)
    #[must_use]
    pub fn least(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1_000_000.0,
            Unit::Microseconds => 1_000.0,
            Unit::Bytes => 4096.0,
            Unit::Count => 1.0,
            Unit::PerSecond | Unit::Percent => 1e-9,
        }
    }
}

fn usage(run: &Run) -> &Usage {
    &run.metrics.usage
}

/// The executable whose process had the largest heap.
fn heap(run: &Run) -> Option<&ExecutableHeap> {
    run.heap.as_ref()?.executables.first()
}

/// Without a table of live blocks it is not known what was requested at the peak.
fn known_peak(run: &Run) -> Option<&HeapSize> {
    let largest = &heap(run)?.largest;
    largest.without_table.is_none().then_some(&largest.peak)
}

/// One field of a command's sync calls; `None` where they could not be seen.
fn syncs(run: &Run, field: fn(&Calls) -> u64) -> Option<f64> {
    (!run.are_syncs_unknown()).then(|| run.syncs(field) as f64)
}

/// Memory at the window's end, where every process could be read.
fn end(service: &ServiceRecord) -> Option<&MemorySample> {
    let end = &service.end;
    (end.processes > 0 && end.unreadable == 0).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_and_a_place_of_its_own() {
        for table in [OF_COMMANDS, OF_SERVICES] {
            let all: Vec<&BuiltIn> = table.iter().chain(OF_LOADS).collect();
            let mut names: Vec<&str> = all.iter().map(|metric| metric.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all.len());
            let mut lines: Vec<u8> = all.iter().filter_map(|metric| metric.line()).collect();
            lines.sort_unstable();
            assert!(lines.iter().copied().eq(0..lines.len() as u8), "{lines:?}");
        }
    }
}
