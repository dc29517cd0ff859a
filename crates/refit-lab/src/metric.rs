//! What is compared: a table, one row for each metric of a run.

use refit_meter::Run;
use refit_stats::Measure;

/// How a metric is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A duration in nanoseconds.
    Nanoseconds,
    /// A duration in microseconds.
    Microseconds,
    /// A size in bytes.
    Bytes,
    /// A number of things.
    Count,
}

/// One metric of a run.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Name in gates, tables and JSON.
    pub name: &'static str,
    /// How its verdict is worded; of all of them less is better.
    pub measure: Measure,
    /// How its values are printed.
    pub unit: Unit,
    /// What it is, for people.
    pub about: &'static str,
    value: fn(&Run) -> Option<u64>,
}

impl Unit {
    /// Values below this are counted as this much, so that a ratio to nothing
    /// exists and is not made of the clock's steps. (The kernel accounts
    /// processor time by ticks of some milliseconds.)
    fn least(self) -> u64 {
        match self {
            Unit::Nanoseconds => 1_000_000,
            Unit::Microseconds => 1_000,
            Unit::Bytes => 4096,
            Unit::Count => 1,
        }
    }
}

macro_rules! metric {
    ($name:literal, $measure:ident, $unit:ident, $about:literal, $value:expr) => {
        Metric {
            name: $name,
            measure: Measure::$measure,
            unit: Unit::$unit,
            about: $about,
            value: $value,
        }
    };
}

/// Every metric. The first is the one that a comparison is about.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    metric!("wall", Duration, Nanoseconds, "from start to end", |r| Some(r.metrics.wall_ns)),
    metric!("user", Amount, Nanoseconds, "processor time in programs (waited-for processes)", |r| Some(r.metrics.user_ns)),
    metric!("system", Amount, Nanoseconds, "processor time in the kernel (waited-for processes)", |r| Some(r.metrics.system_ns)),
    metric!("max-rss", Amount, Bytes, "resident memory of the largest process (wait4)", |r| r.metrics.max_rss_bytes),
    metric!("minor-faults", Amount, Count, "page faults without I/O", |r| Some(r.metrics.minor_faults)),
    metric!("major-faults", Amount, Count, "page faults with I/O", |r| Some(r.metrics.major_faults)),
    metric!("voluntary-switches", Amount, Count, "context switches to wait", |r| Some(r.metrics.voluntary_switches)),
    metric!("involuntary-switches", Amount, Count, "context switches by the kernel", |r| Some(r.metrics.involuntary_switches)),
    metric!("written", Amount, Bytes, "bytes written towards a disk", |r| Some(r.metrics.written_bytes)),
    metric!("psi-cpu", Amount, Microseconds, "tasks of the machine waited for a processor", |r| r.metrics.pressure.map(|p| p.cpu_us)),
    metric!("psi-io", Amount, Microseconds, "tasks of the machine waited for I/O", |r| r.metrics.pressure.map(|p| p.io_us)),
    metric!("psi-memory", Amount, Microseconds, "tasks of the machine waited for memory", |r| r.metrics.pressure.map(|p| p.memory_us)),
    metric!("syncs", Amount, Count, "real sync calls (refit's counters)", |r| Some(r.syncs(|c| c.real))),
    metric!("sync-wait", Amount, Nanoseconds, "time in real sync calls (refit's counters)", |r| Some(r.syncs(|c| c.waited_ns))),
];

impl Metric {
    /// Its row, by name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Its value for a ratio: what is next to nothing is counted as the unit's
    /// least. The time of a run is exact, and is left as it is.
    #[must_use]
    pub fn for_ratio(&self, run: &Run) -> Option<f64> {
        let least = if self.name == METRICS[0].name {
            1
        } else {
            self.unit.least()
        };
        self.of(run).map(|value| value.max(least) as f64)
    }

    /// Its value in a run; `None` where this machine does not have it.
    #[must_use]
    pub fn of(&self, run: &Run) -> Option<u64> {
        (self.value)(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        for (i, metric) in METRICS.iter().enumerate() {
            assert!(
                std::ptr::eq(Metric::find(metric.name).unwrap(), &raw const METRICS[i])
                    || METRICS[..i].iter().all(|m| m.name != metric.name)
            );
        }
        assert!(Metric::find("iowait").is_none());
    }
}
