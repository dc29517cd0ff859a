//! A line for each group and sample, in columns of fixed width, so that lines that come
//! later stand below them.

use refit_run::printable;
use refit_run::series::{GroupSample, Sample, Series, Syncs, growth};

use crate::format::{bytes, grouped, per_second, plural, shortened};

/// Heading and width of each column; the first two are aligned left.
const COLUMNS: [(&str, usize); 15] = [
    ("time", 8),
    ("service", 18),
    ("procs", 5),
    ("syncs/s", 7),
    ("waited", 8),
    ("psi:cpu", 8),
    ("psi:io", 8),
    ("psi:mem", 8),
    ("PSS", 9),
    ("USS", 9),
    ("RSS", 9),
    ("swap", 9),
    ("tables", 9),
    ("growth/h", 11),
    ("VSZ", 9),
];

/// Where a number does not exist.
const NONE: &str = "–";
/// Where it cannot be known.
pub const UNKNOWN: &str = "unknown";

fn line(cells: &[String]) -> String {
    let mut out = String::new();
    for (i, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        let cell = shortened(&printable(cell), width);
        let padding = " ".repeat(width - cell.chars().count());
        if i > 0 {
            out.push_str("  ");
        }
        let left = i < 2;
        out.push_str(if left { &cell } else { &padding });
        out.push_str(if left { &padding } else { &cell });
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// The names of the columns.
#[must_use]
pub fn heading() -> String {
    line(&COLUMNS.map(|(name, _)| name.to_owned()))
}

/// The lines of the last sample: each group's, those that waited longest first and then
/// the largest, and, where there are several, the machine's before them.
#[must_use]
pub fn lines(series: &Series) -> String {
    let Some(sample) = series.samples.last() else {
        return String::new();
    };
    let time = clock(series.started_unix.saturating_add(sample.at_ms / 1000));
    let groups = ordered(sample);
    let several = groups.len() > 1;
    let mut out = String::new();
    if several {
        out.push_str(&line(&machine_cells(sample, &time)));
    }
    for group in groups {
        out.push_str(&line(&cells(series, sample, group, &time, several)));
    }
    if let Some(heap) = sample.heap {
        out.push_str(&format!(
            "{time}  heap: {} requested in {}, {} usable\n",
            bytes(heap.requested_bytes as f64),
            plural(heap.blocks, "block"),
            bytes(heap.usable_bytes as f64)
        ));
    }
    out
}

/// Those that waited longest first, and then the largest.
pub fn ordered(sample: &Sample) -> Vec<&GroupSample> {
    let mut groups: Vec<&GroupSample> = sample.groups.iter().filter(|one| is_shown(one)).collect();
    groups.sort_by_key(|one| {
        let syncs = one.syncs.as_ref();
        let busy = syncs.map_or(0, |syncs| syncs.busy_us / 10_000);
        let pss = one.memory.map_or(one.rss_bytes, |memory| memory.pss_bytes);
        std::cmp::Reverse((busy, pss, std::cmp::Reverse(one.group)))
    });
    groups
}

/// The kernel's own threads only where they made calls.
pub fn is_shown(group: &GroupSample) -> bool {
    group.processes > 0 || group.syncs.as_ref().is_some_and(|syncs| syncs.calls > 0)
}

fn machine_cells(sample: &Sample, time: &str) -> Vec<String> {
    let mut cells = vec![NONE.to_owned(); COLUMNS.len()];
    cells[0] = time.to_owned();
    cells[1] = "(machine)".to_owned();
    cells[2] = grouped(sample.groups.iter().map(|one| one.processes).sum::<u64>());
    if let Some(pressure) = sample.pressure {
        for (cell, us) in
            cells[5..8]
                .iter_mut()
                .zip([pressure.cpu_us, pressure.io_us, pressure.memory_us])
        {
            *cell = share(us, sample.lasted_us);
        }
    }
    let total: u64 = sample
        .groups
        .iter()
        .filter_map(|one| one.memory)
        .map(|memory| memory.pss_bytes)
        .sum();
    let is_partial = sample.groups.iter().any(is_partial);
    cells[8] = bound(total, is_partial);
    cells
}

/// Whether its sums are lower bounds.
pub fn is_partial(group: &GroupSample) -> bool {
    group.unread + group.unreadable > 0
}

/// A sum, marked where it is a lower bound.
pub fn bound(value: u64, is_lower_bound: bool) -> String {
    let value = bytes(value as f64);
    if is_lower_bound {
        format!("≥{value}")
    } else {
        value
    }
}

fn cells(
    series: &Series,
    sample: &Sample,
    group: &GroupSample,
    time: &str,
    several: bool,
) -> Vec<String> {
    let name = series
        .groups
        .get(group.group)
        .map_or("?", |group| &group.name);
    let lasted = sample.lasted_us;
    let pressure = group.pressure.or(sample.pressure.filter(|_| !several));
    let own = group.pressure.is_some();
    let psi = |us: Option<u64>| match us {
        None => NONE.to_owned(),
        Some(us) if own => share(us, lasted),
        Some(us) => format!("({})", share(us, lasted)),
    };
    let memory = |field: fn(&refit_run::Memory) -> u64| match &group.memory {
        _ if group.processes == 0 => NONE.to_owned(),
        None => UNKNOWN.to_owned(),
        Some(memory) => bound(field(memory), is_partial(group)),
    };
    let of_processes = |value: u64| match group.processes {
        0 => NONE.to_owned(),
        _ => bytes(value as f64),
    };
    vec![
        time.to_owned(),
        name.to_owned(),
        grouped(group.processes),
        group
            .syncs
            .as_ref()
            .map_or(UNKNOWN.to_owned(), |syncs| rate(syncs.calls, lasted)),
        group
            .syncs
            .as_ref()
            .map_or(UNKNOWN.to_owned(), |syncs| waited(syncs, lasted)),
        psi(pressure.map(|one| one.cpu_us)),
        psi(pressure.map(|one| one.io_us)),
        psi(pressure.map(|one| one.memory_us)),
        memory(|memory| memory.pss_bytes),
        memory(|memory| memory.uss_bytes),
        of_processes(group.rss_bytes),
        memory(|memory| memory.swap_bytes),
        memory(|memory| memory.page_tables_bytes),
        per_hour(series, group.group),
        of_processes(group.vsz_bytes),
    ]
}

/// Calls in a second.
pub fn rate(calls: u64, lasted_us: u64) -> String {
    if lasted_us == 0 {
        return NONE.to_owned();
    }
    if calls == 0 {
        return "0".to_owned();
    }
    per_second(calls as f64 * 1e6 / lasted_us as f64)
}

/// The share of the time in which somebody waited.
pub fn waited(syncs: &Syncs, lasted_us: u64) -> String {
    if lasted_us == 0 {
        return NONE.to_owned();
    }
    if syncs.calls > 0 && syncs.untimed == syncs.calls && syncs.waited_us == 0 {
        return UNKNOWN.to_owned();
    }
    let bound = if syncs.untimed > 0 { "≥" } else { "" };
    format!("{bound}{}", share(syncs.busy_us, lasted_us))
}

/// `8 %`, `0.3 %`.
pub fn share(part_us: u64, lasted_us: u64) -> String {
    let percent = 100.0 * part_us as f64 / lasted_us.max(1) as f64;
    match percent {
        0.0 => "0 %".to_owned(),
        _ if percent < 0.1 => "<0.1 %".to_owned(),
        _ if percent < 9.95 => format!("{percent:.1} %"),
        _ => format!("{:.0} %", percent.min(100.0)),
    }
}

/// `+12 MiB`, where it is certain that something grows or shrinks; `±0` where not.
pub fn per_hour(series: &Series, group: usize) -> String {
    match growth(series, group) {
        None => NONE.to_owned(),
        Some(growth) if !growth.is_certain() => "±0".to_owned(),
        Some(growth) => signed_bytes(growth.bytes_per_hour),
    }
}

/// `+12 MiB`, `−3.0 KiB`.
pub fn signed_bytes(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", bytes(value))
}

/// The time of day, UTC.
fn clock(unix: u64) -> String {
    let of_day = unix % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_the_longest_wait_comes_first() {
        let series = sample::machine();
        let text = heading() + &lines(&series);
        let expected = "\
time      service             procs  syncs/s    waited   psi:cpu    psi:io   psi:mem        PSS        USS        RSS       swap     tables     growth/h        VSZ
20:53:20  (machine)               6        –         –      10 %      25 %       0 %   ≥220 MiB          –          –          –          –            –          –
20:53:20  postfix                 4      204     8.0 %         –         –         –    100 MiB     90 MiB    200 MiB        0 B    1.0 MiB      +35 MiB     10 GiB
20:53:20  app\\u{1b}[2J            2        0       0 %         –         –         –   ≥120 MiB   ≥108 MiB    240 MiB       ≥0 B   ≥1.2 MiB           ±0     12 GiB
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_unknown_is_never_0() {
        let mut series = sample::machine();
        let sample = series.samples.last_mut().expect("it has samples");
        sample.groups.truncate(1);
        sample.groups[0].syncs = None;
        sample.groups[0].memory = None;
        let text = lines(&series);
        assert_eq!(text.matches("unknown").count(), 6, "{text}");
        assert!(text.contains("(25 %)"), "the machine's pressure: {text}");
    }

    #[test]
    fn the_machine_s_smallest_pressure_has_room() {
        let mut series = sample::machine();
        let sample = series.samples.last_mut().expect("it has samples");
        sample.groups.truncate(1);
        let pressure = sample.pressure.as_mut().expect("it has a pressure");
        pressure.io_us = 1;
        let text = lines(&series);
        assert!(text.contains(" (<0.1 %) "), "{text}");
    }

    #[test]
    fn a_filesystem_that_tells_no_times_gives_no_share() {
        let syncs = |calls, untimed, busy_us| Syncs {
            calls,
            untimed,
            busy_us,
            waited_us: busy_us,
            ..Syncs::default()
        };
        assert_eq!(waited(&syncs(5, 5, 0), 1000), "unknown");
        assert_eq!(waited(&syncs(5, 2, 80), 1000), "≥8.0 %");
        assert_eq!(waited(&syncs(0, 0, 0), 1000), "0 %");
        assert_eq!(share(1, 1_000_000), "<0.1 %");
        assert_eq!(share(5, 0), "100 %");
        assert_eq!(clock(86_399), "23:59:59");
    }
}
