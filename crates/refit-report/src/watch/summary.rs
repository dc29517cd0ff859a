//! The end of a watch: what grew, what is missing, and what watching took.

use refit_run::printable;
use refit_run::series::{
    Growth, HeapGrowth, LEAST_FOR_GROWTH, Series, Witnessing, growth, heap_growth,
};

use super::columns::signed_bytes;
use crate::format::{bytes, duration, file_name, grouped, plural};
use crate::run_summary::{NO_HEAP, huge_pages, not_counted};

/// At most this many services are told of.
const MOST: usize = 5;

/// Lines for stderr, each beginning with `refit: `.
#[must_use]
pub fn summary(series: &Series) -> String {
    let lines = facts(series).into_iter();
    lines
        .map(|line| format!("refit: {}\n", printable(&line)))
        .collect()
}

/// The same as sentences.
pub fn facts(series: &Series) -> Vec<String> {
    let mut lines = Vec::new();
    waits(series, &mut lines);
    growths(series, &mut lines);
    heap(series, &mut lines);
    if let Some(largest) = series.largest_process_bytes {
        lines.push(format!(
            "the largest process had {} resident at its peak",
            bytes(largest as f64)
        ));
    }
    for one in &series.huge_pages {
        if let Some(text) = huge_pages(one.could_add_bytes) {
            let name = &series.groups[one.group].name;
            lines.push(format!("{name} ({}): {text}", one.pid));
        }
    }
    let mut looks = series.huge_pages.iter();
    if looks.any(|one| one.could_add_bytes.is_none()) {
        lines.push("of some large processes it was not read what huge pages would add: that would take more than 1 % of a core".to_owned());
    }
    missing(series, &mut lines);
    lines.push(cost(series));
    lines
}

/// Calls, microseconds of one group over all samples.
pub fn total(series: &Series, group: usize) -> (u64, u64) {
    let of_group = series
        .samples
        .iter()
        .flat_map(|sample| &sample.groups)
        .filter(|one| one.group == group);
    of_group
        .filter_map(|one| one.syncs.as_ref())
        .fold((0, 0), |(calls, busy), syncs| {
            (
                calls.saturating_add(syncs.calls),
                busy.saturating_add(syncs.busy_us),
            )
        })
}

/// Time that all samples are of, in microseconds.
pub fn lasted(series: &Series) -> u64 {
    series
        .samples
        .iter()
        .map(|sample| sample.lasted_us)
        .fold(0, u64::saturating_add)
}

fn waits(series: &Series, lines: &mut Vec<String>) {
    let lasted_us = lasted(series);
    let mut all: Vec<(u64, u64, usize)> = (0..series.groups.len())
        .map(|group| {
            let (calls, busy) = total(series, group);
            (busy, calls, group)
        })
        .filter(|(_, calls, _)| *calls > 0)
        .collect();
    all.sort_unstable_by_key(|(busy, calls, _)| std::cmp::Reverse((*busy, *calls)));
    for (busy, calls, group) in all.into_iter().take(MOST) {
        let name = &series.groups[group].name;
        let share = super::columns::share(busy, lasted_us);
        let of = duration(lasted_us as f64 * 1e3);
        lines.push(format!(
            "{name}: {} waited {share} of {of}{}",
            plural(calls, "sync call"),
            who(series, group)
        ));
    }
}

/// `, 97 % of it cleanup, in /var/spool/postfix/incoming`
fn who(series: &Series, group: usize) -> String {
    let mut callers = std::collections::BTreeMap::<&str, u64>::new();
    let mut directories = std::collections::BTreeMap::<&str, u64>::new();
    let of_group = series
        .samples
        .iter()
        .flat_map(|sample| &sample.groups)
        .filter(|one| one.group == group);
    for syncs in of_group.filter_map(|one| one.syncs.as_ref()) {
        for caller in &syncs.callers {
            *callers.entry(file_name(&caller.executable)).or_default() += caller.calls;
        }
        for directory in &syncs.directories {
            if let Some(path) = &directory.path {
                *directories.entry(path).or_default() += directory.calls;
            }
        }
    }
    let all: u64 = callers.values().sum();
    let most = |of: &std::collections::BTreeMap<&str, u64>| {
        of.iter()
            .max_by_key(|(_, calls)| **calls)
            .map(|(name, calls)| ((*name).to_owned(), *calls))
    };
    let mut text = String::new();
    if let Some((name, calls)) = most(&callers) {
        text += &match calls {
            _ if calls == all => format!(", all of {name}"),
            _ => format!(", {} of them {name}", grouped(calls)),
        };
    }
    if let Some((path, _)) = most(&directories) {
        text += &format!(", most in {path}");
    }
    text
}

fn growths(series: &Series, lines: &mut Vec<String>) {
    let mut all: Vec<_> = (0..series.groups.len())
        .filter_map(|group| Some((growth(series, group)?, group)))
        .filter(|(growth, _)| growth.is_certain())
        .collect();
    all.sort_by(|(a, _), (b, _)| b.bytes_per_hour.abs().total_cmp(&a.bytes_per_hour.abs()));
    for (growth, group) in all.into_iter().take(MOST) {
        let [low, high] = growth.interval.map(signed_bytes);
        lines.push(format!(
            "{}: PSS {} per hour [{low}, {high}]",
            series.groups[group].name,
            signed_bytes(growth.bytes_per_hour)
        ));
    }
}

/// Growth of the rest is reported where it is more than a fourth of the growth of live blocks: the counting library's table
/// grows by an eighth of what they do, and every heap has free parts.
const SMALL: f64 = 4.0;

/// Growth of live blocks is reported where it is more than a hundredth of the growth of the rest: between two samples a
/// program has a few blocks more or fewer, and in a short watch that may look like growth.
const NEGLIGIBLE: f64 = 100.0;

/// Which of the two grows: live blocks, or the rest of the process's memory.
fn heap(series: &Series, lines: &mut Vec<String>) {
    if let Some(coverage) = &series.heap_coverage {
        if coverage.processes == 0 {
            lines.push(NO_HEAP.to_owned());
        }
        lines.extend(not_counted(&coverage.uncounted));
    }
    lines.extend(heap_growth(series, 0).map(|growth| what_grows(&growth, series.samples.len())));
}

/// `samples`: all that there are.
fn what_grows(growth: &HeapGrowth, samples: usize) -> String {
    let told = |one: &Growth| {
        let [low, high] = one.interval.map(signed_bytes);
        format!(
            "{} per hour [{low}, {high}]",
            signed_bytes(one.bytes_per_hour)
        )
    };
    let Some(live) = &growth.live else {
        return format!(
            "heap: whether it grows is unknown after {}: {LEAST_FOR_GROWTH} are needed; watch for longer",
            plural(samples, "sample")
        );
    };
    let leak = || {
        let growth = told(live);
        format!("what is live grows, {growth}: a leak, or data that is needed")
    };
    let Some(rest) = &growth.rest else {
        let live = match live.interval[0] > 0.0 {
            true => leak(),
            false => "what is live does not grow for certain".to_owned(),
        };
        return format!(
            "heap: {live}; what lies beside it is unknown: memory was read in {} of {samples} samples, and {LEAST_FOR_GROWTH} are needed; watch for longer",
            growth.read
        );
    };
    // See SMALL: the table of live blocks grows with them.
    let table = live.interval[1].max(0.0) / SMALL;
    let rest_grows = rest.interval[0] > table;
    let live_grows = live.interval[0] > rest.interval[0].max(0.0) / NEGLIGIBLE;
    match (live_grows, rest_grows) {
        (true, false) => format!("heap: {}", leak()),
        (false, true) => format!(
            "heap: what grows is not what is live but what lies beside it, {}: fragments, free memory that is kept, or memory that is not malloc's; refit run --heap tells these apart",
            told(rest)
        ),
        (true, true) => format!(
            "heap: what is live grows, {}, and what lies beside it, {}",
            told(live),
            told(rest)
        ),
        (false, false) => "heap: nothing grows for certain".to_owned(),
    }
}

fn missing(series: &Series, lines: &mut Vec<String>) {
    if let Witnessing::Unavailable(reason) = &series.witness {
        lines.push(format!("sync calls are unknown: {reason}"));
    }
    let Some(last) = series.samples.last() else {
        lines.push("nothing was sampled".to_owned());
        return;
    };
    if last.lost > 0 {
        lines.push(format!(
            "at least {} of the kernel's records were lost: the counts of sync calls are lower bounds",
            grouped(last.lost)
        ));
    }
    let unreadable: u64 = last.groups.iter().map(|one| one.unreadable).sum();
    if unreadable > 0 {
        lines.push(format!(
            "the memory of {} could not be read (no permission): totals marked ≥ are lower bounds; run refit as root",
            plural(unreadable, "process")
        ));
    }
    let unread: u64 = last.groups.iter().map(|one| one.unread).sum();
    if unread > 0 {
        lines.push(format!(
            "the memory of {} was not read yet: totals marked ≥ are lower bounds; watch for longer",
            plural(unread, "process")
        ));
    }
    let oldest = last.groups.iter().max_by_key(|one| one.memory_age_ms);
    if let Some(one) = oldest.filter(|one| is_outdated(series, one.memory_age_ms)) {
        lines.push(format!(
            "{}: memory was last read {} before the end, and RSS has changed since (read more rarely, to stay below 1 % of a core)",
            series.groups[one.group].name,
            duration(one.memory_age_ms as f64 * 1e6)
        ));
    }
    let vsz: u64 = last
        .groups
        .iter()
        .map(|one| one.vsz_bytes)
        .fold(0, u64::saturating_add);
    if vsz > 0 {
        lines.push(format!(
            "VSZ, {} at the end, is address space; most of it is not memory",
            bytes(vsz as f64)
        ));
    }
}

fn cost(series: &Series) -> String {
    let share = series.cost.share().map_or("unknown".to_owned(), |share| {
        format!("{:.1} %", share * 100.0)
    });
    let intervals = plural(series.samples.len(), "sample");
    format!("{intervals}{}; refit used {share} of a core", apart(series))
}

/// How far apart samples are, where that is more than what was asked for: reading took longer, or two became one.
fn apart(series: &Series) -> String {
    let asked_us = series.interval_ms.saturating_mul(1000);
    match apart_us(series) {
        Some(median_us) if median_us > asked_us.saturating_add(asked_us / 2) => format!(
            ", mostly {} apart instead of {}",
            duration(median_us as f64 * 1e3),
            duration(asked_us as f64 * 1e3)
        ),
        _ => String::new(),
    }
}

/// The median of the times between two samples, in microseconds.
fn apart_us(series: &Series) -> Option<u64> {
    let mut apart: Vec<u64> = series.samples.iter().map(|one| one.lasted_us).collect();
    apart.retain(|lasted_us| *lasted_us > 0);
    apart.sort_unstable();
    apart.get(apart.len() / 2).copied()
}

/// Whether a reading of what has changed since is older than two samples: one that is due may wait for the next.
fn is_outdated(series: &Series, age_ms: u64) -> bool {
    apart_us(series)
        .is_some_and(|apart_us| age_ms.saturating_mul(1000) > apart_us.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_end_names_waits_growth_what_is_missing_and_the_cost() {
        let expected = "\
refit: postfix: 12,240 sync calls waited 8.0 % of 60.0 s, all of cleanup, most in /var/spool/postfix/incoming
refit: postfix: PSS +35 MiB per hour [+35 MiB, +35 MiB]
refit: the memory of 1 process could not be read (no permission): totals marked ≥ are lower bounds; run refit as root
refit: VSZ, 22 GiB at the end, is address space; most of it is not memory
refit: 60 samples; refit used 0.4 % of a core
";
        assert_eq!(summary(&sample::machine()), expected);
    }

    #[test]
    fn samples_that_are_rarer_than_asked_for_are_told() {
        let mut series = sample::machine();
        for sample in &mut series.samples {
            sample.lasted_us *= 4;
        }
        let text = summary(&series);
        let expected = "refit: 60 samples, mostly 4.00 s apart instead of 1.00 s; refit used 0.4 % of a core\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn memory_that_was_read_long_before_the_end_is_told() {
        let mut series = sample::machine();
        let last = series.samples.len() - 1;
        series.samples[last].groups[0].memory_age_ms = 2_000;
        assert!(!summary(&series).contains("last read"));
        series.samples[last].groups[0].memory_age_ms = 58_300;
        let name = &series.groups[series.samples[last].groups[0].group].name;
        let expected = format!(
            "refit: {name}: memory was last read 58.3 s before the end, and RSS has changed since (read more rarely, to stay below 1 % of a core)\n"
        );
        assert!(summary(&series).contains(&expected), "{}", summary(&series));
    }

    #[test]
    fn what_is_live_is_told_where_memory_was_hardly_read() {
        let grows = Growth {
            bytes_per_hour: 1e9,
            interval: [9e8, 1.1e9],
        };
        let mut growth = HeapGrowth {
            live: Some(grows),
            rest: None,
            read: 3,
        };
        let text = what_grows(&growth, 60);
        assert!(
            text.contains("what is live grows, +954 MiB per hour ["),
            "{text}"
        );
        let unknown = "beside it is unknown: memory was read in 3 of 60 samples, and 8 are needed";
        assert!(text.contains(unknown), "{text}");
        growth.live = Some(Growth {
            interval: [-1.0, 1.1e9],
            ..grows
        });
        let text = what_grows(&growth, 60);
        assert!(
            text.contains("does not grow for certain; ") && text.contains(unknown),
            "{text}"
        );
        growth.live = None;
        assert!(what_grows(&growth, 2).contains("whether it grows is unknown"));
        growth.live = Some(grows);
        growth.rest = Some(Growth {
            bytes_per_hour: 0.0,
            interval: [-1.0, 1.0],
        });
        assert!(!what_grows(&growth, 60).contains("unknown"));
    }

    #[test]
    fn without_root_sync_calls_are_unknown() {
        let mut series = sample::machine();
        series.witness = Witnessing::Unavailable("only root can ask the kernel".to_owned());
        series.samples.clear();
        series.cost.wall_us = 0;
        let text = summary(&series);
        assert_eq!(
            text,
            "refit: sync calls are unknown: only root can ask the kernel\nrefit: nothing was sampled\n\
             refit: 0 samples; refit used unknown of a core\n"
        );
    }
}
