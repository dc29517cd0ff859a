//! What is printed after a run: what waited, what was swapped, what was not reached.

mod heap;
mod html;
mod identity;
mod time;
mod waits;
mod witness;

pub use heap::{NO_HEAP, not_counted};
pub use html::html as run_html;
pub use identity::huge_pages;
pub use witness::{calls_not_counted, calls_not_seen, who};

use std::fmt::Write;

use refit_run::{
    Advice, AllocatorKind, FilterReport, InEffect, Input, Proposal, Reason, RunReport,
    SettingReport, advice, is_allocator, printable,
};

use crate::calls::{ALL, by_call, sum};
use crate::coverage;
use crate::fold::fold;
use crate::format::{command_line, duration, file_name, grouped, plural};

/// Before what can be typed.
const TRY: &str = "try   ";

/// Before each line.
const LEAD: &str = "refit: ";

/// The lines that follow a run, each beginning with `refit: `; on a terminal so broad at most. What can be typed stays
/// on its line.
#[must_use]
pub fn run_summary(report: &RunReport, width: Option<usize>) -> String {
    let room = width.map(|width| width.saturating_sub(LEAD.len()));
    let folded = lines(report, true).into_iter().flat_map(|line| match room {
        Some(room) if !line.starts_with(TRY) => indented(&line, room),
        _ => vec![line],
    });
    folded.fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{LEAD}{}", printable(&line));
        all
    })
}

/// In lines that fit, each as far to the right as the first.
fn indented(line: &str, width: usize) -> Vec<String> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let folded = fold(text, width.saturating_sub(indent.len()));
    folded
        .iter()
        .map(|line| format!("{indent}{line}"))
        .collect()
}

/// They without that; what belongs to the line before is indented. `with_findings`: those of the durability check, too.
fn lines(report: &RunReport, with_findings: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if report.settings.is_empty() {
        observed(report, &mut lines);
    } else {
        swapped(report, &mut lines);
    }
    time::lines(report, &mut lines);
    if report.settings.is_empty() {
        time::worth_trying(report, &mut lines);
    }
    crate::cpu_profile::lines(report, &mut lines);
    crate::durability::lines(report, with_findings, &mut lines);
    report
        .run
        .heap
        .iter()
        .for_each(|heap| heap::lines(heap, &mut lines));
    if let Some(heap) = &report.run.heap {
        let mut largest = heap.executables.iter().map(|one| &one.largest);
        let is_limited = largest.any(|largest| largest.without_table.is_some());
        let peak = |executable: &str| {
            let mut all = heap.executables.iter();
            let one = all.find(|one| one.executable == executable)?;
            Some(one.largest.peak.requested_bytes)
        };
        identity::lines(report.run.memory.as_ref(), is_limited, peak, &mut lines);
        lines.extend(report.run.purge.iter().map(identity::purge));
    }
    let executables = report.heap_paths.iter().take(heap::MOST_EXECUTABLES);
    executables.for_each(|one| crate::heap_paths::lines(one, &mut lines));
    lines.extend(witness::lines(report));
    lines.extend(coverage::lines(report));
    lines
}

fn reached(report: &RunReport) -> String {
    let coverage = &report.run.coverage;
    format!(
        "reached {} of {} by {}",
        grouped(coverage.processes_reached),
        plural(coverage.processes_seen, "process"),
        coverage.backend
    )
}

fn share(report: &RunReport, waited_ns: u64) -> String {
    let share = 100.0 * waited_ns as f64 / report.run.metrics.wall_ns.max(1) as f64;
    // Several processes wait at once: then the sum says more than a share.
    if share <= 100.0 {
        format!(
            " of {} ({share:.0} %)",
            duration(report.run.metrics.wall_ns as f64)
        )
    } else {
        " in all processes together".to_owned()
    }
}

/// `waited 1.24 s of 1.46 s (85 %)`, as far as that is known.
fn waiting(report: &RunReport, waited_ns: u64) -> String {
    let unmeasured = match &report.run.coverage.seccomp {
        Some(FilterReport::Installed(reached)) => reached.unmeasured,
        _ => 0,
    };
    let waited = format!(
        "waited {}{}",
        duration(waited_ns as f64),
        share(report, waited_ns)
    );
    match (waited_ns, unmeasured) {
        (_, 0) => waited,
        (0, _) => "waited for a time that seccomp cannot measure".to_owned(),
        (_, n) => format!(
            "{waited}, not counting {} by seccomp, which cannot measure it",
            grouped(n)
        ),
    }
}

/// Whether some syncs may have been answered without being counted.
fn uncounted(report: &RunReport) -> bool {
    let coverage = &report.run.coverage;
    let is_alone = matches!(&coverage.seccomp, Some(FilterReport::Installed(reached))
        if reached.processes > 0 && coverage::answers_uncounted(reached));
    coverage.answered_uncounted || is_alone
}

/// Whether there are, or may be, sync calls that refit did not count.
fn hides_syncs(report: &RunReport) -> bool {
    report.run.coverage.has_own_syscalls() || witness::escaped_calls(report) > 0
}

/// `50 sync calls`, or what is known of how many there were.
fn all_of_them(report: &RunReport, seen: u64) -> String {
    let escaped = witness::escaped_calls(report);
    if escaped > 0 {
        return format!(
            "at least {}",
            plural(seen.saturating_add(escaped), "sync call")
        );
    }
    let counted = match report.run.coverage.has_own_syscalls() {
        true => " that were counted",
        false => "",
    };
    format!("{}{counted}", plural(seen, "sync call"))
}

fn observed(report: &RunReport, lines: &mut Vec<String>) {
    let seen = sum(&report.run.totals, |calls| calls.seen);
    let waited = sum(&report.run.totals, |calls| calls.waited_ns);
    if seen == 0 {
        let none = match report.run.coverage.processes_reached {
            0 if report.run.are_syncs_unknown() => "sync calls unknown",
            _ if hides_syncs(report) => "no sync calls counted",
            _ if report.run.are_syncs_unknown() => "no sync calls seen in what was reached",
            _ => "no sync calls seen",
        };
        lines.push(format!("{none}; {}; nothing was changed", reached(report)));
    } else {
        lines.push(format!(
            "{} {}: {}; {}; nothing was changed",
            plural(seen, "sync call"),
            waiting(report, waited),
            by_call(&report.run.totals, |calls| calls.seen, ALL),
            reached(report)
        ));
        waits::lines(report, |calls| calls.seen, lines);
    }
    if let Some(opens) = report.run.totals.get("open(O_SYNC)") {
        lines.push(format!(
            "{} with O_SYNC or O_DSYNC: each write to such a file waits too, and is not counted",
            plural(opens.seen, "open")
        ));
    }
    worth_trying(report, lines);
}

fn worth_trying(report: &RunReport, lines: &mut Vec<String>) {
    let Advice {
        proposals,
        obstacle,
        options,
    } = advice(report);
    for proposal in proposals {
        let Proposal { setting, class, .. } = &proposal;
        lines.push(match (proposal.reason, proposal.comparison, &obstacle) {
            (Reason::Direct, ..) => format!(
                "some files bypass the page cache (O_DIRECT): {setting} removes that ({class})"
            ),
            (Reason::SyncsWait, _, Some(obstacle)) => {
                format!("no comparison with {setting} is suggested: {obstacle}")
            }
            (Reason::SyncsWait, Some(duration), None) => format!(
                "{TRY}refit compare {} -- {}    ({class}; about {} s{})",
                command_line(&[&options[..], std::slice::from_ref(setting)].concat()),
                command_line(&report.command),
                duration.as_nanos().div_ceil(1_000_000_000),
                match report.repetition.input {
                    Some(Input::Stream) => "; store its standard input in FILE before",
                    _ => "",
                }
            ),
            (Reason::SyncsWait, None, None) => format!(
                "{TRY}refit run {setting} -- {}    ({class})",
                command_line(&report.command)
            ),
        });
    }
}

fn swapped(report: &RunReport, lines: &mut Vec<String>) {
    let settings: Vec<String> = report
        .settings
        .iter()
        .map(|setting| format!("{} ({})", setting.setting, setting.class))
        .collect();
    lines.push(format!("{}; {}", settings.join(" "), reached(report)));
    lines.extend(report.settings.iter().filter_map(not_in_effect));
    swapped_syncs(report, lines);
    for (call, flag) in TAKEN_FLAGS {
        if let Some(calls) = report
            .run
            .totals
            .get(call)
            .filter(|calls| calls.suppressed > 0)
        {
            lines.push(format!(
                "{flag} removed from {} of {}",
                grouped(calls.suppressed),
                plural(calls.seen, "open file")
            ));
        }
    }
    if let Some(wanted) = report.settings.iter().find_map(SettingReport::allocator) {
        malloc(report, &wanted, lines);
    }
}

/// A setting that was in effect nowhere, or in some processes only.
pub(crate) fn not_in_effect(setting: &SettingReport) -> Option<String> {
    let name = &setting.setting;
    match &setting.in_effect {
        InEffect::Nowhere(reason) => Some(format!("{name} is not in effect: {reason}")),
        InEffect::Partly(reason) => Some(format!("{name} is in effect in part: {reason}")),
        InEffect::Everywhere | InEffect::Unknown => None,
    }
}

/// Flags that are taken from a file, by the call that they are counted under.
const TAKEN_FLAGS: [(&str, &str); 3] = [
    ("open(O_SYNC)", "O_SYNC or O_DSYNC"),
    ("open(O_DIRECT)", "O_DIRECT"),
    ("fcntl(O_DIRECT)", "O_DIRECT (set later)"),
];

fn swapped_syncs(report: &RunReport, lines: &mut Vec<String>) {
    let all = &report.run.totals;
    let seen = sum(all, |calls| calls.seen);
    let suppressed = sum(all, |calls| calls.suppressed);
    if suppressed > 0 {
        lines.push(format!(
            "suppressed {} of {}: {}",
            grouped(suppressed),
            all_of_them(report, seen),
            by_call(all, |calls| calls.suppressed, ALL)
        ));
        waits::lines(report, |calls| calls.suppressed, lines);
    }
    let injected = by_call(all, |calls| calls.injected, ALL);
    if !injected.is_empty() {
        lines.push(format!(
            "failed with {} of {}: {injected}",
            fault(report),
            plural(seen, "sync call")
        ));
    }
    let real = by_call(all, |calls| calls.real, ALL);
    let waited = sum(all, |calls| calls.waited_ns);
    // A setting that is not in effect has been reported with its reason.
    let swaps_syncs = report.settings.iter().any(SettingReport::swaps_syncs);
    if !real.is_empty() {
        let word = match coverage::passes_on(&report.run.coverage) {
            true => "passed on",
            false => "real",
        };
        lines.push(format!("{word}: {real}; {}", waiting(report, waited)));
        if suppressed == 0 {
            waits::lines(report, |calls| calls.real, lines);
        }
    } else if seen == 0 && swaps_syncs {
        lines.push(match uncounted(report) {
            true => "no sync calls counted; what only the filter sees the kernel answers with 0"
                .to_owned(),
            false if hides_syncs(report) => "no sync calls counted".to_owned(),
            false => "no sync calls seen".to_owned(),
        });
    }
}

/// `EIO 3`: the error of the emulated disk, and how often it was returned.
fn fault(report: &RunReport) -> String {
    let settings = report.settings.iter();
    let error = settings
        .filter_map(SettingReport::injected_error)
        .next_back();
    let failed = sum(&report.run.totals, |calls| calls.injected);
    format!("{} {}", error.unwrap_or("an error"), grouped(failed))
}

/// Which object served malloc, by the number of executables.
fn malloc(report: &RunReport, wanted: &AllocatorKind, lines: &mut Vec<String>) {
    let mut served = 0_u64;
    for executable in &report.run.executables {
        let object = executable.malloc_object.as_deref();
        if object.is_some_and(|object| is_allocator(wanted, object)) {
            served = served.saturating_add(executable.processes);
        }
        if executable.deepbind {
            lines.push(format!(
                "{} opened a library with RTLD_DEEPBIND: it may use another malloc",
                file_name(&executable.executable)
            ));
        }
    }
    let name = match wanted {
        AllocatorKind::Named(named) => named.name,
        AllocatorKind::Path(path) => file_name(path.to_str().unwrap_or("it")),
    };
    lines.push(format!(
        "malloc is served by {name} in {} of {}",
        grouped(served),
        plural(report.run.coverage.processes_reached, "process")
    ));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use refit_run::{
        Calls, Coverage, ExecutableReport, InEffect, Metrics, Outcome, Repetition, Run,
        UnreachedProgram,
    };

    pub fn calls(seen: u64, suppressed: u64, waited_ns: u64) -> Calls {
        Calls {
            seen,
            suppressed,
            real: seen - suppressed,
            waited_ns,
            injected: 0,
        }
    }

    pub fn executable(path: &str, name: &'static str, calls: Calls) -> ExecutableReport {
        ExecutableReport {
            executable: path.to_owned(),
            processes: 1,
            calls: BTreeMap::from([(name.to_owned(), calls)]),
            malloc_object: None,
            deepbind: false,
            directories: Vec::new(),
        }
    }

    pub fn report(settings: &[&str], executables: Vec<ExecutableReport>) -> RunReport {
        let mut totals: BTreeMap<String, Calls> = BTreeMap::new();
        for (name, calls) in executables.iter().flat_map(|e| &e.calls) {
            let total = totals.entry(name.clone()).or_default();
            total.seen += calls.seen;
            total.suppressed += calls.suppressed;
            total.real += calls.real;
            total.waited_ns += calls.waited_ns;
        }
        RunReport {
            schema: 1,
            kind: "run".to_owned(),
            refit: "0".to_owned(),
            command: vec!["./import.sh".to_owned(), "it's".to_owned()],
            settings: settings
                .iter()
                .map(|text| SettingReport::new(text.parse().unwrap(), InEffect::Everywhere))
                .collect(),
            repetition: Repetition::default(),
            heap_paths: Vec::new(),
            durability: None,
            cpu: None,
            run: Run {
                metrics: Metrics {
                    wall_ns: 1_460_000_000,
                    ..Metrics::default()
                },
                exit: Outcome::Code(0),
                coverage: Coverage {
                    backend: "preload".to_owned(),
                    processes_seen: executables.len() as u64,
                    processes_reached: executables.len() as u64,
                    ..Coverage::default()
                },
                totals,
                executables,
                survivors: Vec::new(),
                heap: None,
                memory: None,
                purge: None,
                time: None,
                witness: None,
            },
        }
    }

    #[test]
    fn an_observed_run_says_what_waited_and_what_to_try() {
        let import = executable(
            "/usr/bin/import",
            "fdatasync",
            calls(8_000, 0, 1_200_000_000),
        );
        let sync = executable("/bin/sync", "fsync", calls(12, 0, 40_000_000));
        assert_eq!(
            run_summary(&report(&[], vec![import, sync]), None),
            "refit: 8,012 sync calls waited 1.24 s of 1.46 s (85 %): fdatasync 8,000 · fsync 12; \
             reached 2 of 2 processes by preload; nothing was changed\n\
             refit:   import: fdatasync 8,000, waited 1.20 s\n\
             refit:   sync: fsync 12, waited 40.0 ms\n\
             refit: try   refit compare sync@exe:import=off -- ./import.sh 'it'\\''s'    (loses-on-crash; about 79 s)\n"
        );
    }

    #[test]
    fn on_a_terminal_lines_end_at_words_and_what_can_be_typed_stays_whole() {
        let import = executable(
            "/usr/bin/import",
            "fdatasync",
            calls(8_000, 0, 1_200_000_000),
        );
        let mut report = report(&[], vec![import]);
        report.run.coverage.unreached = vec![UnreachedProgram {
            name: "/usr/sbin/ldconfig".to_owned(),
            reason: "static".to_owned(),
            count: 50,
        }];
        assert_eq!(
            run_summary(&report, Some(60)),
            "refit: 8,000 sync calls waited 1.20 s of 1.46 s (82 %):\n\
             refit:   fdatasync 8,000; reached 1 of 1 process by preload;\n\
             refit:   nothing was changed\n\
             refit: try   refit compare sync=off -- ./import.sh 'it'\\''s'    (loses-on-crash; about 79 s)\n\
             refit: not reached, run as without refit: ldconfig (static)\n\
             refit:   ×50\n"
        );
        assert_eq!(indented("  waited in a b", 13), ["  waited in a", "    b"]);
    }

    #[test]
    fn a_swapped_run_says_what_was_suppressed_and_who_was_not_reached() {
        let one = executable("/usr/bin/import", "fsync", calls(1_000, 999, 3_000_000));
        let mut report = report(&["sync=off"], vec![one]);
        report.run.coverage.processes_seen = 51;
        report.run.coverage.unreached = vec![UnreachedProgram {
            name: "/usr/sbin/ldconfig".to_owned(),
            reason: "static".to_owned(),
            count: 50,
        }];
        assert_eq!(
            run_summary(&report, None),
            "refit: sync=off (loses-on-crash); reached 1 of 51 processes by preload\n\
             refit: suppressed 999 of 1,000 sync calls: fsync 999\n\
             refit: real: fsync 1; waited 3.00 ms of 1.46 s (0 %)\n\
             refit: not reached, run as without refit: ldconfig (static) ×50\n"
        );
    }
}
