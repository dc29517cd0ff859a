//! Where the time of a run's threads went.

use std::collections::BTreeMap;

use refit_run::{Activity, RunReport, TimeAccount};

use super::TRY;
use crate::format::{command_line, duration, file_name, grouped, plural};
use crate::html::elements::section;
use crate::html::grid::grid;
use crate::markup::Markup;
use crate::table::Column;

/// Fewer samples than this say nothing.
const FEWEST_SAMPLES: u64 = 10;
/// A part below this share of all is left out of the sentence.
const SMALL: f64 = 0.01;
/// What is more than this share of all is worth a look, where it is not over at once.
const MOST: f64 = 0.5;
const WORTH_NS: u64 = 500_000_000;
/// Two counts of processor time that differ by less than this share of it are taken to be of the same processes.
const SAME: f64 = 0.1;
/// Executables and peers that are named.
const NAMED: usize = 3;

/// What a blocked thread waits for, as it is named; `None`: it is not blocked.
fn name(activity: Activity) -> Option<&'static str> {
    Some(match activity {
        Activity::Cpu | Activity::Runnable => return None,
        Activity::Sync => "sync",
        Activity::Read => "reading files",
        Activity::Write => "writing files",
        Activity::Files => "names of files",
        Activity::Network => "network",
        Activity::Pipe => "pipes and local sockets",
        Activity::Lock => "locks",
        Activity::Thread => "other threads",
        Activity::Child => "child processes",
        Activity::Timer => "timers",
        Activity::Idle => "requests (idle)",
        Activity::Other => "other calls",
        Activity::Unknown => "unknown",
    })
}

/// What there is enough of to say something.
fn account(report: &RunReport) -> Option<&TimeAccount> {
    report
        .run
        .time
        .as_ref()
        .filter(|time| time.samples >= FEWEST_SAMPLES)
}

/// `5.50 s of 1 thread: 2.10 s on a processor; blocked on network 2.60 s (10.0.0.1:3128), sync 149 ms`.
pub fn lines(report: &RunReport, lines: &mut Vec<String>) {
    let Some(time) = account(report) else {
        return;
    };
    let all = time.thread_ns as f64;
    let totals = time.totals();
    let is_large = |ns: u64| ns as f64 >= SMALL * all;
    let of = |activity| totals.get(&activity).copied().unwrap_or_default();
    let mut parts = vec![format!(
        "{} on a processor{}{}",
        duration(of(Activity::Cpu) as f64),
        busiest(time),
        in_kernel(report, time, of(Activity::Cpu)).unwrap_or_default()
    )];
    let runnable = of(Activity::Runnable);
    if is_large(runnable) {
        parts.push(format!(
            "{} waiting for a processor",
            duration(runnable as f64)
        ));
    }
    let mut blocked: Vec<(Activity, u64)> = totals
        .iter()
        .map(|(activity, ns)| (*activity, *ns))
        .collect();
    blocked.retain(|(activity, ns)| name(*activity).is_some() && is_large(*ns));
    blocked.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let blocked: Vec<String> = blocked
        .into_iter()
        .filter_map(|(activity, ns)| {
            let peers = match activity {
                Activity::Network => named(&time.peers),
                _ => String::new(),
            };
            Some(format!(
                "{} {}{peers}",
                name(activity)?,
                duration(ns as f64)
            ))
        })
        .collect();
    if !blocked.is_empty() {
        parts.push(format!("blocked on {}", blocked.join(", ")));
    }
    lines.push(format!("{}: {}", whose(time), parts.join("; ")));
    if is_large(time.unseen_cpu_ns) {
        lines.push(format!(
            "  besides, {} of processors in processes that were not seen to their end; what these waited for is unknown",
            duration(time.unseen_cpu_ns as f64)
        ));
    }
}

/// What the largest part of the account makes worth trying, of a run that only observed.
pub fn worth_trying(report: &RunReport, lines: &mut Vec<String>) {
    let Some(time) = account(report) else {
        return;
    };
    let totals = time.totals();
    let of = |activity| totals.get(&activity).copied().unwrap_or_default();
    let is_most = |ns: u64| ns >= WORTH_NS && ns as f64 >= MOST * time.thread_ns as f64;
    let is_repeatable = report.repetition.obstacle(report.run.exit).is_none();
    if is_most(of(Activity::Cpu)) && report.cpu.is_none() && is_repeatable {
        lines.push(format!(
            "{TRY}refit run --cpu -- {}    (names the functions and lines that ran)",
            command_line(&report.command)
        ));
    }
    if is_most(of(Activity::Network)) {
        lines.push("  no setting of refit changes how long a network or a peer takes".to_owned());
    }
}

fn whose(time: &TimeAccount) -> String {
    let processes = match time.processes {
        1 => String::new(),
        processes => format!(" in {} processes", grouped(processes)),
    };
    format!(
        "{} of {}{processes}",
        duration(time.thread_ns as f64),
        plural(time.threads, "thread")
    )
}

/// How much of the processor time was in the kernel, where the account has the same processes as wait4(2), which tells it.
fn in_kernel(report: &RunReport, time: &TimeAccount, cpu_ns: u64) -> Option<String> {
    let usage = &report.run.metrics.usage;
    let ([_, system], all) = (usage.halves()?, usage.processor_ns());
    let is_same = |one: u64, other: u64| one.abs_diff(other) as f64 <= SAME * all as f64;
    let share = system as f64 / all as f64;
    let is_told = is_same(cpu_ns, all) && is_same(time.unseen_cpu_ns, 0) && share >= SMALL;
    is_told.then(|| format!(", {:.0} % of it in the kernel", 100.0 * share))
}

/// Who was on a processor, where several executables were.
fn busiest(time: &TimeAccount) -> String {
    // Two of one name are one here.
    let mut each: BTreeMap<String, u64> = BTreeMap::new();
    for (executable, parts) in &time.executables {
        let cpu = parts.get(&Activity::Cpu).copied().unwrap_or_default();
        *each.entry(file_name(executable).to_owned()).or_default() += cpu;
    }
    each.retain(|_, ns| *ns > 0);
    if each.len() > 1 {
        named(&each)
    } else {
        String::new()
    }
}

/// ` (a 1.9 s, b 0.2 s)`: the largest.
fn named(all: &BTreeMap<String, u64>) -> String {
    let sum: u64 = all.values().sum();
    let mut all: Vec<_> = all
        .iter()
        .filter(|(_, ns)| **ns as f64 >= SMALL * sum as f64)
        .collect();
    all.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
    let more = all.len().saturating_sub(NAMED);
    let mut words: Vec<String> = all
        .into_iter()
        .take(NAMED)
        .map(|(name, ns)| format!("{name} {}", duration(*ns as f64)))
        .collect();
    if more > 0 {
        words.push(format!("{more} more"));
    }
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}

/// The account as a table on the page of a run: all executables together, and those with the most time.
pub fn html(main: &mut Markup, report: &RunReport) {
    let Some(time) = account(report) else {
        return;
    };
    let totals = time.totals();
    let mut activities: Vec<(Activity, u64)> =
        totals.into_iter().filter(|(_, ns)| *ns > 0).collect();
    activities.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let mut executables: Vec<_> = time.executables.iter().collect();
    executables.sort_by_key(|(_, parts)| std::cmp::Reverse(parts.values().sum::<u64>()));
    section(main, "Where the time went", |section| {
        let text = format!(
            "{}. How long each ran and waited for a processor is counted by the kernel; what it was blocked on is divided as \
             {} samples are, which were at most {} apart.",
            whose(time),
            grouped(time.samples),
            duration(time.longest_pause_ns as f64)
        );
        section.leaf("p", &[], &text);
        let title = |activity: Activity| match activity {
            Activity::Cpu => "on a processor".to_owned(),
            Activity::Runnable => "waiting for a processor".to_owned(),
            Activity::Unknown => "blocked, on what is unknown".to_owned(),
            activity => format!("blocked on {}", name(activity).unwrap_or_default()),
        };
        let mut columns = vec![
            Column::words("threads were", activities.iter().map(|(of, _)| title(*of))),
            Column::numbers("all", activities.iter().map(|(_, ns)| duration(*ns as f64))),
        ];
        if executables.len() > 1 {
            for (executable, parts) in executables.into_iter().take(NAMED) {
                let cells = activities
                    .iter()
                    .map(|(activity, _)| match parts.get(activity) {
                        Some(ns) => duration(*ns as f64),
                        None => "–".to_owned(),
                    });
                columns.push(Column::numbers(file_name(executable), cells));
            }
        }
        let columns: Vec<&Column> = columns.iter().collect();
        grid(section, "time of threads", "", &columns);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_summary::tests::report;

    fn said(time: TimeAccount) -> Vec<String> {
        let mut report = report(&[], Vec::new());
        report.run.time = Some(time);
        let mut all = Vec::new();
        lines(&report, &mut all);
        all
    }

    fn download() -> TimeAccount {
        TimeAccount {
            samples: 500,
            longest_pause_ns: 15_000_000,
            threads: 1,
            processes: 1,
            thread_ns: 5_500_000_000,
            unseen_cpu_ns: 1_000_000,
            executables: BTreeMap::from([(
                "/usr/bin/python3".to_owned(),
                BTreeMap::from([
                    (Activity::Cpu, 2_100_000_000),
                    (Activity::Runnable, 50_000_000),
                    (Activity::Sync, 149_000_000),
                    (Activity::Network, 3_180_000_000),
                    (Activity::Unknown, 21_000_000),
                ]),
            )]),
            peers: BTreeMap::from([("10.0.0.1:3128".to_owned(), 3_180_000_000)]),
        }
    }

    #[test]
    fn parts_are_named_by_size_and_small_ones_are_left_out() {
        assert_eq!(
            said(download()),
            [
                "5.50 s of 1 thread: 2.10 s on a processor; blocked on network 3.18 s (10.0.0.1:3128 3.18 s), sync 149 ms"
            ]
        );
    }

    #[test]
    fn who_ran_is_named_where_several_did_and_what_was_not_seen_is_told() {
        let mut time = download();
        time.executables.insert(
            "/bin/sh".to_owned(),
            BTreeMap::from([(Activity::Cpu, 60_000_000)]),
        );
        // Of the same name.
        time.executables.insert(
            "/opt/sh".to_owned(),
            BTreeMap::from([(Activity::Cpu, 40_000_000)]),
        );
        time.threads = 2;
        time.processes = 2;
        time.unseen_cpu_ns = 700_000_000;
        let said = said(time);
        assert!(said[0].starts_with("5.50 s of 2 threads in 2 processes: 2.20 s on a processor (python3 2.10 s, sh 100 ms);"), "{said:?}");
        assert_eq!(
            said[1],
            "  besides, 700 ms of processors in processes that were not seen to their end; what these waited for is unknown"
        );
    }

    #[test]
    fn how_much_was_in_the_kernel_is_told_of_the_same_processes_alone() {
        for (user, system, unseen, told) in [
            (1_890_000_000, 210_000_000, 0, ", 10 % of it in the kernel;"),
            (2_100_000_000, 10_000_000, 0, ""),
            // A daemon that nobody waited for; a process that was not seen; too few ticks.
            (1_500_000_000, 210_000_000, 0, ""),
            (1_890_000_000, 210_000_000, 400_000_000, ""),
            (0, 0, 0, ""),
        ] {
            let mut report = report(&[], Vec::new());
            report.run.metrics.usage.user_ns = user;
            report.run.metrics.usage.system_ns = system;
            report.run.time = Some(TimeAccount {
                unseen_cpu_ns: unseen,
                ..download()
            });
            let mut all = Vec::new();
            lines(&report, &mut all);
            let told = if told.is_empty() { ";" } else { told };
            assert!(
                all[0].contains(&format!("2.10 s on a processor{told}")),
                "{all:?}"
            );
        }
    }

    #[test]
    fn the_largest_part_names_what_is_worth_trying() {
        let told = |time: TimeAccount, is_profiled: bool| {
            let mut report = report(&[], Vec::new());
            report.run.time = Some(time);
            report.cpu = is_profiled.then(Default::default);
            let mut all = Vec::new();
            worth_trying(&report, &mut all);
            all
        };
        let network = "  no setting of refit changes how long a network or a peer takes";
        assert_eq!(told(download(), false), [network]);
        let mut busy = download();
        let parts = busy.executables.values_mut().next().unwrap();
        parts.insert(Activity::Cpu, 3_000_000_000);
        parts.insert(Activity::Network, 2_280_000_000);
        let all = told(busy.clone(), false);
        assert!(
            matches!(&*all, [one] if one.starts_with("try   refit run --cpu -- ")),
            "{all:?}"
        );
        assert!(told(busy, true).is_empty());
    }

    #[test]
    fn a_few_samples_say_nothing() {
        assert!(
            said(TimeAccount {
                samples: 9,
                ..download()
            })
            .is_empty()
        );
    }
}
