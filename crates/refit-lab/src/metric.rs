//! The metrics of a run: tables with one row for each.

use std::borrow::Cow;

use refit_recipe::{Direction, LoadUnit};
use refit_run::{Calls, ExecutableHeap, HeapSize, MemorySample, Usage};
use refit_stats::Measure;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, LoadMetricRecord, RunRecord, ServiceRecord};

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

/// One metric of a run.
#[derive(Clone)]
pub struct Metric {
    /// Name in gates, tables and JSON.
    pub name: Cow<'static, str>,
    /// How its verdict is worded, and which side is the better one.
    pub measure: Measure,
    /// How its values are printed.
    pub unit: Unit,
    /// What it is, for people.
    pub about: Cow<'static, str>,
    value: Value,
}

#[derive(Clone, Copy)]
enum Value {
    /// Accounted in steps: values below the unit's least are counted as that much.
    Stepped(fn(&RunRecord) -> Option<f64>),
    /// Measured as it is.
    Exact(fn(&RunRecord) -> Option<f64>),
    /// A difference, of either sign: it has no ratio, hence no effect.
    Difference(fn(&RunRecord) -> Option<f64>),
    /// Read from what the load printed.
    Load,
}

impl Unit {
    /// Values below this are counted as this much, so that a ratio to nothing
    /// exists and is not made of the clock's steps. (The kernel divides
    /// processor time by ticks of some milliseconds.)
    fn least(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1_000_000.0,
            Unit::Microseconds => 1_000.0,
            Unit::Bytes => 4096.0,
            Unit::Count => 1.0,
            Unit::PerSecond | Unit::Percent => 1e-9,
        }
    }

    /// In which values of a load are stored and printed.
    fn of_load(unit: LoadUnit) -> Unit {
        match unit {
            LoadUnit::Nanoseconds
            | LoadUnit::Microseconds
            | LoadUnit::Milliseconds
            | LoadUnit::Seconds => Unit::Nanoseconds,
            LoadUnit::Bytes | LoadUnit::Kibibytes | LoadUnit::Mebibytes | LoadUnit::Gibibytes => {
                Unit::Bytes
            }
            LoadUnit::Count => Unit::Count,
            LoadUnit::PerSecond => Unit::PerSecond,
            LoadUnit::Percent => Unit::Percent,
        }
    }
}

macro_rules! metric {
    ($name:literal, $measure:ident, $unit:ident, $kind:ident, $about:literal, $value:expr) => {
        Metric {
            name: Cow::Borrowed($name),
            measure: Measure::$measure,
            unit: Unit::$unit,
            about: Cow::Borrowed($about),
            value: Value::$kind($value),
        }
    };
}

/// Processor time in nanoseconds of which the kernel knows the halves. It measures the sum, and
/// divides it as its ticks fell (kernel/sched/cputime.c, `cputime_adjust`): a run of one tick is all
/// `user` or all `system`. This is 10 ticks of the slowest clock that Linux has, CONFIG_HZ_100.
const DIVIDED_FROM_NS: u64 = 100_000_000;

/// One half of the processor time; `None` of a run that was too short for its ticks to tell.
fn divided(usage: &Usage, half: u64) -> Option<f64> {
    (usage.processor_ns() >= DIVIDED_FROM_NS).then_some(half as f64)
}

/// The executable whose process had the largest heap.
fn heap(record: &RunRecord) -> Option<&ExecutableHeap> {
    record.run.heap.as_ref()?.executables.first()
}

/// Without a table of live blocks it is not known what was requested at the peak.
fn known_peak(record: &RunRecord) -> Option<&HeapSize> {
    let largest = &heap(record)?.largest;
    largest.without_table.is_none().then_some(&largest.peak)
}

/// Every metric of a command. The first is the main metric of such a comparison.
#[rustfmt::skip]
const OF_COMMANDS: &[Metric] = &[
    metric!("wall", Duration, Nanoseconds, Exact, "from start to end", |r| Some(r.run.metrics.wall_ns as f64)),
    metric!("cpu", Amount, Nanoseconds, Exact, "processor time (waited-for processes)", |r| Some(usage(r).processor_ns() as f64)),
    metric!("user", Amount, Nanoseconds, Stepped, "processor time in programs (waited-for processes)", |r| divided(usage(r), usage(r).user_ns)),
    metric!("system", Amount, Nanoseconds, Stepped, "processor time in the kernel (waited-for processes)", |r| divided(usage(r), usage(r).system_ns)),
    metric!("max-rss", Amount, Bytes, Stepped, "resident memory of the largest process (wait4)", |r| usage(r).max_rss_bytes.map(|n| n as f64)),
    metric!("heap-requested", Amount, Bytes, Stepped, "live bytes as requested, at the peak of the largest heap (--heap)", |r| known_peak(r).map(|peak| peak.requested_bytes as f64)),
    metric!("heap-usable", Amount, Bytes, Stepped, "the same with the allocator's rounding", |r| heap(r).map(|one| one.largest.peak.usable_bytes as f64)),
    metric!("heap-rounding", Amount, Bytes, Stepped, "usable but not requested, at the same moment", |r| known_peak(r).map(|peak| peak.internal_bytes() as f64)),
    metric!("heap-left", Amount, Bytes, Stepped, "live bytes as requested, at the end of that process", |r| heap(r).map(|one| one.largest.end.requested_bytes as f64)),
    metric!("allocations", Amount, Count, Stepped, "blocks that malloc gave out, in all processes (--heap)", |r| r.run.heap.as_ref().map(|heap| heap.allocations() as f64)),
    metric!("minor-faults", Amount, Count, Stepped, "page faults without I/O", |r| Some(usage(r).minor_faults as f64)),
    metric!("major-faults", Amount, Count, Stepped, "page faults with I/O", |r| Some(usage(r).major_faults as f64)),
    metric!("voluntary-switches", Amount, Count, Stepped, "context switches to wait", |r| Some(usage(r).voluntary_switches as f64)),
    metric!("involuntary-switches", Amount, Count, Stepped, "context switches by the kernel", |r| Some(usage(r).involuntary_switches as f64)),
    metric!("written", Amount, Bytes, Stepped, "bytes written towards a disk", |r| Some(usage(r).written_bytes as f64)),
    metric!("psi-cpu", Amount, Microseconds, Stepped, "tasks of the machine waited for a processor", |r| r.run.metrics.pressure.map(|p| p.cpu_us as f64)),
    metric!("psi-io", Amount, Microseconds, Stepped, "tasks of the machine waited for I/O", |r| r.run.metrics.pressure.map(|p| p.io_us as f64)),
    metric!("psi-memory", Amount, Microseconds, Stepped, "tasks of the machine waited for memory", |r| r.run.metrics.pressure.map(|p| p.memory_us as f64)),
    metric!("syncs", Amount, Count, Stepped, "real sync calls (refit's counters)", |r| counted(r, |c| c.real)),
    metric!("sync-wait", Amount, Nanoseconds, Stepped, "time in real sync calls (refit's counters)", |r| counted(r, |c| c.waited_ns)),
];

/// Of any recipe.
#[rustfmt::skip]
const OF_LOADS: &[Metric] = &[
    metric!("rate", Rate, PerSecond, Exact, "operations in a second of the measured window", |r| {
        let load = r.load.as_ref()?;
        Some(load.operations as f64 * 1e9 / load.window_ns.max(1) as f64)
    }),
];

/// Of a service, all over the measured window.
#[rustfmt::skip]
const OF_SERVICES: &[Metric] = &[
    metric!("ready", Duration, Nanoseconds, Exact, "from the start until the service was ready", |r| service(r).filter(|s| s.ready_ns > 0).map(|s| s.ready_ns as f64)),
    metric!("cpu", Amount, Nanoseconds, Stepped, "processor time of the service", |r| service(r).map(|s| s.user_ns.saturating_add(s.system_ns) as f64)),
    metric!("written", Amount, Bytes, Stepped, "bytes that the service wrote towards a disk (/proc/PID/io)", |r| service(r)?.written_bytes.map(|n| n as f64)),
    metric!("psi-cpu", Amount, Microseconds, Stepped, "tasks of the machine waited for a processor", |r| service(r)?.pressure.map(|p| p.cpu_us as f64)),
    metric!("psi-io", Amount, Microseconds, Stepped, "tasks of the machine waited for I/O", |r| service(r)?.pressure.map(|p| p.io_us as f64)),
    metric!("psi-memory", Amount, Microseconds, Stepped, "tasks of the machine waited for memory", |r| service(r)?.pressure.map(|p| p.memory_us as f64)),
    metric!("syncs", Amount, Count, Stepped, "real sync calls (refit's counters)", |r| service(r).map(|s| s.syncs(|c| c.real) as f64)),
    metric!("sync-wait", Amount, Nanoseconds, Stepped, "time in real sync calls (refit's counters)", |r| service(r).map(|s| s.syncs(|c| c.waited_ns) as f64)),
    metric!("pss", Amount, Bytes, Stepped, "proportional memory of the whole tree at the window's end (smaps_rollup)", |r| end(r).map(|m| m.pss_bytes() as f64)),
    metric!("pss-parent", Amount, Bytes, Stepped, "… of the main process", |r| end(r).map(|m| m.parent_pss_bytes as f64)),
    metric!("pss-children", Amount, Bytes, Stepped, "… of all others", |r| end(r).map(|m| m.children_pss_bytes as f64)),
    metric!("pss-peak", Amount, Bytes, Stepped, "the highest of at least 20 samples", |r| service(r)?.peak_pss_bytes().map(|n| n as f64)),
    metric!("rss", Amount, Bytes, Stepped, "resident memory at the window's end, shared pages counted in each process", |r| end(r).map(|m| m.rss_bytes as f64)),
    metric!("vsz", Amount, Bytes, Stepped, "address space at the window's end", |r| end(r).map(|m| m.vsz_bytes as f64)),
    metric!("fork-copies", Amount, Bytes, Stepped, "copies of pages that were shared after a fork, at the window's end (pagemap)", |r| service(r)?.fork_copies_bytes.map(|n| n as f64)),
    metric!("memory-used", Amount, Bytes, Difference, "how much less was available on the machine than before the start", |r| service(r)?.memory_used_bytes.map(|n| n as f64)),
];

fn usage(run: &RunRecord) -> &Usage {
    &run.run.metrics.usage
}

/// One field of a command's sync calls; `None` where they could not be seen.
fn counted(run: &RunRecord, field: fn(&Calls) -> u64) -> Option<f64> {
    (!run.run.are_syncs_unknown()).then(|| run.run.syncs(field) as f64)
}

fn service(run: &RunRecord) -> Option<&ServiceRecord> {
    run.load.as_ref()?.service.as_ref()
}

/// Memory at the window's end, where every process could be read.
fn end(run: &RunRecord) -> Option<&MemorySample> {
    let end = &service(run)?.end;
    (end.processes > 0 && end.unreadable == 0).then_some(end)
}

impl ServiceRecord {
    /// Samples below which a peak is no more than a lower bound.
    const ENOUGH_SAMPLES: usize = 20;

    /// Sums over the calls of the window that wait for durability.
    #[must_use]
    pub fn syncs(&self, field: fn(&Calls) -> u64) -> u64 {
        let calls = self.calls.values().flatten();
        let syncs = calls.filter(|(name, _)| !refit_run::OPENING.contains(&name.as_str()));
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

impl Metric {
    /// What a recipe reads from its load.
    fn of_load(record: &LoadMetricRecord) -> Metric {
        let unit = Unit::of_load(record.unit);
        let measure = match (unit, record.better) {
            (_, Direction::More) => Measure::Rate,
            (Unit::Nanoseconds, _) => Measure::Duration,
            _ => Measure::Amount,
        };
        Metric {
            name: Cow::Owned(record.name.clone()),
            measure,
            unit,
            about: Cow::Owned(record.about.clone()),
            value: Value::Load,
        }
    }

    /// Its value for a ratio: a value that is accounted in steps, and smaller than
    /// the unit's least, counts as the least.
    #[must_use]
    pub fn for_ratio(&self, run: &RunRecord) -> Option<f64> {
        let least = match self.value {
            Value::Stepped(_) => self.unit.least(),
            // 0 has no ratio.
            Value::Exact(_) | Value::Load => f64::MIN_POSITIVE,
            Value::Difference(_) => return None,
        };
        self.of(run).map(|value| value.max(least))
    }

    /// Its value in a run; `None` where this machine or this run does not have it.
    #[must_use]
    pub fn of(&self, run: &RunRecord) -> Option<f64> {
        match self.value {
            Value::Stepped(value) | Value::Exact(value) | Value::Difference(value) => value(run),
            Value::Load => run.load.as_ref()?.values.get(&*self.name).copied(),
        }
    }
}

impl Experiment {
    /// What its runs have, in the order in which tables list it.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let Some(recipe) = &self.recipe else {
            return OF_COMMANDS.to_vec();
        };
        if recipe.replicas.is_some() {
            return recipe.metrics.iter().map(Metric::of_load).collect();
        }
        OF_LOADS
            .iter()
            .cloned()
            .chain(recipe.metrics.iter().map(Metric::of_load))
            .chain(built_in(recipe.is_service).iter().cloned())
            .collect()
    }

    /// By name.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<Metric> {
        self.metrics()
            .into_iter()
            .find(|metric| metric.name == name)
    }

    /// What the comparison is about.
    #[must_use]
    pub fn main_metric(&self) -> Metric {
        self.metric(&self.main)
            .unwrap_or_else(|| OF_COMMANDS[0].clone())
    }
}

/// What every recipe with a service has, or without one.
fn built_in(is_service: bool) -> &'static [Metric] {
    if is_service { OF_SERVICES } else { OF_COMMANDS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        for table in [OF_COMMANDS, OF_SERVICES] {
            let mut names: Vec<&str> = table.iter().chain(OF_LOADS).map(|m| &*m.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn processor_time_of_a_few_ticks_has_no_halves() {
        let mut usage = Usage {
            user_ns: 3_032_000,
            ..Usage::default()
        };
        assert_eq!(divided(&usage, usage.system_ns), None);
        usage.system_ns = DIVIDED_FROM_NS - usage.user_ns;
        assert_eq!(divided(&usage, usage.user_ns), Some(3_032_000.0));
    }

    /// The check of a recipe's file reads these lists.
    #[test]
    fn recipes_know_the_names_of_all_metrics() {
        let names = |table: &[Metric]| -> Vec<String> {
            table.iter().map(|metric| metric.name.to_string()).collect()
        };
        assert_eq!(names(OF_COMMANDS), refit_recipe::COMMAND_METRICS);
        assert_eq!(names(OF_LOADS), refit_recipe::LOAD_METRICS);
        assert_eq!(names(OF_SERVICES), refit_recipe::SERVICE_METRICS);
    }
}
