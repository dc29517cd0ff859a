//! What `refit watch` tells a monitoring system.

use std::collections::BTreeSet;

use refit_run::series::{Cost, Group, GroupSample, Growth, Sample, Series, growth};

use super::{Family, Metrics};

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
    "Processes of the service whose memory was not or may not be read: with any, PSS, USS and swap are lower bounds.",
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
    /// The value of its label: no other has it.
    label: String,
    /// The time of the last sample that it is in.
    seen_at_ms: u64,
    /// Whether its durable calls are known.
    has_syncs: bool,
    calls: u64,
    untimed: u64,
    waited_us: u64,
    busy_us: u64,
    now: Option<GroupSample>,
    growth: Option<Growth>,
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
                label,
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
            service.now = Some(one.clone());
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
            metrics.add(&LOST, &[], self.lost as f64);
        }
        if let Some(unix) = self.sampled_unix {
            metrics.add(&SAMPLED, &[], unix as f64);
            metrics.add(&WATCHING, &[], self.cost.cpu_us as f64 / 1e6);
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
        let label = [("service", &*self.label)];
        let mut add = |family, value| metrics.add(family, &label, value);
        if self.has_syncs {
            add(&SYNC_CALLS, self.calls as f64);
            add(&SYNC_UNTIMED, self.untimed as f64);
            // Of calls none of which was timed nothing is known.
            if self.calls == 0 || self.untimed < self.calls || self.waited_us > 0 {
                add(&SYNC_WAIT, self.waited_us as f64 / 1e6);
                add(&SYNC_BUSY, self.busy_us as f64 / 1e6);
            }
        }
        let Some(now) = self.now.as_ref().filter(|now| now.processes > 0) else {
            return;
        };
        add(&PROCESSES, now.processes as f64);
        add(&RSS, now.rss_bytes as f64);
        add(&UNREAD, now.unread.saturating_add(now.unreadable) as f64);
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

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use crate::watch::sample;

    /// All samples of a series, taken in one by one, with every growth estimated.
    fn watched(series: &Series) -> WatchMetrics {
        let mut metrics = WatchMetrics::default();
        for sample in &series.samples {
            metrics.add(series, sample);
        }
        while metrics.estimate_next(series) {}
        metrics
    }

    fn text(metrics: &WatchMetrics) -> String {
        metrics.metrics().text(Format::Prometheus)
    }

    #[track_caller]
    fn expect(text: &str, sample: &str) {
        let mut lines = text.lines();
        assert!(
            lines.any(|line| line == sample),
            "{sample} is not in {text}"
        );
    }

    #[test]
    fn counts_are_of_all_samples_and_memory_is_of_the_last() {
        let text = text(&watched(&sample::machine()));
        // 60 samples with 204 calls of 500 µs each, which overlap: 80 ms in each second.
        expect(&text, "refit_sync_calls_total{service=\"postfix\"} 12240");
        expect(
            &text,
            "refit_sync_wait_seconds_total{service=\"postfix\"} 6.12",
        );
        expect(
            &text,
            "refit_sync_busy_seconds_total{service=\"postfix\"} 4.8",
        );
        expect(
            &text,
            "refit_memory_pss_bytes{service=\"postfix\"} 104857600",
        );
        // 10 KiB a second.
        expect(
            &text,
            "refit_memory_growth_bytes_per_hour{service=\"postfix\"} 36864000",
        );
        expect(
            &text,
            "refit_unread_processes{service=\"app\\\\u{1b}[2J\"} 1",
        );
        expect(
            &text,
            "refit_watch_last_sample_timestamp_seconds 1795208000",
        );
        let names: Vec<String> = FAMILIES.iter().map(|family| family.sample_name()).collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
    }

    #[test]
    fn what_is_unknown_has_no_sample() {
        let mut series = sample::machine();
        for group in series.samples.iter_mut().flat_map(|one| &mut one.groups) {
            group.syncs = None;
            group.memory = None;
        }
        let text = text(&watched(&series));
        for absent in [
            "refit_sync",
            "refit_watch_lost",
            "_pss_",
            "_swap_",
            "growth",
        ] {
            assert!(!text.contains(absent), "{absent} in {text}");
        }
        expect(&text, "refit_processes{service=\"postfix\"} 4");
        assert!(WatchMetrics::default().metrics().text(Format::OpenMetrics) == "# EOF\n");
    }

    #[test]
    fn calls_without_times_have_no_wait() {
        let mut series = sample::machine();
        for group in series.samples.iter_mut().flat_map(|one| &mut one.groups) {
            let syncs = group.syncs.as_mut().unwrap();
            (syncs.untimed, syncs.waited_us, syncs.busy_us) = (syncs.calls, 0, 0);
        }
        let text = text(&watched(&series));
        expect(
            &text,
            "refit_sync_untimed_calls_total{service=\"postfix\"} 12240",
        );
        assert!(
            !text.contains("wait_seconds_total{service=\"postfix\"}"),
            "{text}"
        );
    }

    #[test]
    fn no_two_services_have_the_same_label() {
        let mut series = sample::machine();
        let (group, of) = (
            series.groups[0].clone(),
            series.samples[0].groups[0].clone(),
        );
        for index in 2..5 {
            series.groups.push(group.clone());
            series.samples[0].groups.push(GroupSample {
                group: index,
                ..of.clone()
            });
        }
        series.groups[4].cgroup = Some("/user.slice/postfix.service".to_owned());
        series.samples.truncate(1);
        let text = text(&watched(&series));
        for name in ["postfix", "postfix (40)", "postfix (40) #3"] {
            expect(&text, &format!("refit_processes{{service=\"{name}\"}} 4"));
        }
        expect(
            &text,
            "refit_processes{service=\"postfix (/user.slice/postfix.service)\"} 4",
        );
    }

    #[test]
    fn what_has_ended_keeps_its_counts_for_a_while_and_has_no_memory() {
        let mut series = sample::machine();
        let mut metrics = watched(&series);
        let mut last = series.samples.pop().unwrap();
        last.groups.remove(0);
        last.at_ms += GONE_MS;
        metrics.add(&series, &last);
        let soon = text(&metrics);
        expect(&soon, "refit_sync_calls_total{service=\"postfix\"} 12240");
        assert!(!soon.contains("bytes{service=\"postfix\"}"), "{soon}");
        last.at_ms += 1000;
        metrics.add(&series, &last);
        assert!(!text(&metrics).contains("postfix"));
    }
}
