//! What `refit watch` tells a monitoring system.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use refit_run::Memory;
use refit_run::series::{Cost, Group, GroupSample, Growth, Sample, Series, growth};

use super::{Family, Labels, Metrics};

static SYNC_CALLS: Family = Family::counter(
    "refit_sync_calls",
    "",
    "Durable calls of the service that reached a filesystem.",
);
static SYNC_WAIT: Family = Family::counter(
    "refit_sync_wait_seconds",
    "seconds",
    "Time that threads of the service waited for durable calls, summed over threads.",
);
static SYNC_BUSY: Family = Family::counter(
    "refit_sync_busy_seconds",
    "seconds",
    "Time in which at least one thread of the service waited for a durable call.",
);
static SYNC_UNTIMED: Family = Family::counter(
    "refit_sync_untimed_calls",
    "",
    "Durable calls whose filesystem does not tell how long they took: with any, the waits are lower bounds.",
);
static LOST: Family = Family::counter(
    "refit_watch_lost_records",
    "",
    "Records for which the kernel had no room: with any, the counts of durable calls are lower bounds.",
);
static PROCESSES: Family = Family::gauge(
    "refit_processes",
    "",
    "Processes of the service, without those that wait to be reaped.",
);
static UNREAD: Family = Family::gauge(
    "refit_unread_processes",
    "",
    "Processes of the service whose memory was not or could not be read: with any, PSS, USS and swap are lower bounds.",
);
static RSS: Family = Family::gauge(
    "refit_memory_rss_bytes",
    "bytes",
    "Resident memory of the service; what its processes share counts in each.",
);
static PSS: Family = Family::gauge(
    "refit_memory_pss_bytes",
    "bytes",
    "Proportional memory of the service: a page that n processes map counts 1/n in each.",
);
static USS: Family = Family::gauge(
    "refit_memory_uss_bytes",
    "bytes",
    "Memory that no other process maps.",
);
static SWAP: Family = Family::gauge(
    "refit_memory_swap_bytes",
    "bytes",
    "Swapped out, shared proportionally.",
);
static GROWTH: Family = Family::gauge(
    "refit_memory_growth_bytes_per_hour",
    "bytes_per_hour",
    "Growth of PSS over the watch, estimated.",
);
static GROWTH_LOW: Family = Family::gauge(
    "refit_memory_growth_low_bytes_per_hour",
    "bytes_per_hour",
    "Lower end of the 95 % interval of that growth.",
);
static GROWTH_HIGH: Family = Family::gauge(
    "refit_memory_growth_high_bytes_per_hour",
    "bytes_per_hour",
    "Upper end of the 95 % interval of that growth.",
);
static SAMPLED: Family = Family::gauge(
    "refit_watch_last_sample_timestamp_seconds",
    "seconds",
    "When the last sample was taken, in seconds since 1970.",
);
static WATCHING: Family = Family::counter(
    "refit_watch_cpu_seconds",
    "seconds",
    "Processor time that the watch itself took.",
);

/// All families of a watch.
pub static FAMILIES: [&Family; 16] = [
    &SYNC_CALLS,
    &SYNC_WAIT,
    &SYNC_BUSY,
    &SYNC_UNTIMED,
    &LOST,
    &PROCESSES,
    &UNREAD,
    &RSS,
    &PSS,
    &USS,
    &SWAP,
    &GROWTH,
    &GROWTH_LOW,
    &GROWTH_HIGH,
    &SAMPLED,
    &WATCHING,
];

/// A service that has ended, or made no more calls, is told of for this long: Prometheus itself looks back 5 minutes.
const GONE_MS: u64 = 5 * 60 * 1000;

/// A service, from the beginning of the watch.
#[derive(Default)]
struct Service {
    /// No other has these.
    labels: Labels,
    /// The time of the last sample that it is in.
    seen_at_ms: u64,
    /// Whether its durable calls are known.
    has_syncs: bool,
    calls: u64,
    untimed: u64,
    waited_us: u64,
    busy_us: u64,
    now: Option<Now>,
    growth: Option<Growth>,
}

/// Its processes in the last sample.
struct Now {
    processes: u64,
    unread: u64,
    rss_bytes: u64,
    memory: Option<Memory>,
}

impl Now {
    /// `None`: it has none.
    fn of(sample: &GroupSample) -> Option<Now> {
        (sample.processes > 0).then(|| Now {
            processes: sample.processes,
            unread: sample.unread.saturating_add(sample.unreadable),
            rss_bytes: sample.rss_bytes,
            memory: sample.memory,
        })
    }
}

/// What a watch has seen so far: counts since its beginning, and the last sample.
#[derive(Default)]
pub struct WatchMetrics {
    services: Vec<Service>,
    labels: BTreeSet<String>,
    at_ms: u64,
    sampled_unix: Option<u64>,
    lost: u64,
    cost: Cost,
    /// The service whose growth is estimated next.
    next: usize,
}

impl WatchMetrics {
    /// Takes a sample in. `series`: what it belongs to, for its groups and its beginning.
    pub fn add(&mut self, series: &Series, sample: &Sample) {
        for group in &series.groups[self.services.len().min(series.groups.len())..] {
            let label = self.label(group);
            self.services.push(Service {
                labels: Labels::of(&[("service", &label)]),
                ..Service::default()
            });
        }
        self.at_ms = sample.at_ms;
        self.sampled_unix = Some(series.started_unix.saturating_add(sample.at_ms / 1000));
        self.lost = sample.lost;
        self.cost = series.cost;
        for service in &mut self.services {
            service.now = None;
        }
        for one in &sample.groups {
            let Some(service) = self.services.get_mut(one.group) else {
                continue;
            };
            service.seen_at_ms = sample.at_ms;
            if let Some(syncs) = &one.syncs {
                service.has_syncs = true;
                let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
                add(&mut service.calls, syncs.calls);
                add(&mut service.untimed, syncs.untimed);
                add(&mut service.waited_us, syncs.waited_us);
                add(&mut service.busy_us, syncs.busy_us);
            }
            service.now = Now::of(one);
        }
    }

    /// Estimates the growth of the service whose turn it is. False: there is none left in this round.
    pub fn estimate_next(&mut self, series: &Series) -> bool {
        if self.next >= self.services.len() {
            self.next = 0;
            return false;
        }
        self.services[self.next].growth = growth(series, self.next);
        self.next += 1;
        true
    }

    /// The text's samples.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::of(&FAMILIES);
        let told = |service: &&Service| self.at_ms.saturating_sub(service.seen_at_ms) <= GONE_MS;
        for service in self.services.iter().filter(told) {
            service.tell(&mut metrics);
        }
        if self.services.iter().any(|service| service.has_syncs) {
            metrics.add(&LOST, &Labels::default(), self.lost as f64);
        }
        if let Some(unix) = self.sampled_unix {
            metrics.add(&SAMPLED, &Labels::default(), unix as f64);
            metrics.add(&WATCHING, &Labels::default(), self.cost.cpu_us as f64 / 1e6);
        }
        metrics
    }

    /// The name; where another has it, with what tells them apart.
    fn label(&mut self, group: &Group) -> String {
        let mut label = group.name.clone();
        if self.labels.contains(&label) {
            let pid = || group.pid.map(|pid| pid.to_string());
            let more = group.cgroup.clone().or_else(pid).unwrap_or_default();
            label = format!("{label} ({more})");
        }
        if self.labels.contains(&label) {
            label = format!("{label} #{}", self.services.len());
        }
        self.labels.insert(label.clone());
        label
    }
}

impl Service {
    fn tell(&self, metrics: &mut Metrics) {
        let mut add = |family, value| metrics.add(family, &self.labels, value);
        if self.has_syncs {
            add(&SYNC_CALLS, self.calls as f64);
            add(&SYNC_UNTIMED, self.untimed as f64);
            // Of calls none of which was timed nothing is known.
            if self.calls == 0 || self.untimed < self.calls || self.waited_us > 0 {
                add(&SYNC_WAIT, self.waited_us as f64 / 1e6);
                add(&SYNC_BUSY, self.busy_us as f64 / 1e6);
            }
        }
        let Some(now) = &self.now else {
            return;
        };
        add(&PROCESSES, now.processes as f64);
        add(&RSS, now.rss_bytes as f64);
        add(&UNREAD, now.unread as f64);
        if let Some(memory) = &now.memory {
            add(&PSS, memory.pss_bytes as f64);
            add(&USS, memory.uss_bytes as f64);
            add(&SWAP, memory.swap_bytes as f64);
        }
        if let Some(growth) = self.growth {
            add(&GROWTH, growth.bytes_per_hour);
            add(&GROWTH_LOW, growth.interval[0]);
            add(&GROWTH_HIGH, growth.interval[1]);
        }
    }
}
