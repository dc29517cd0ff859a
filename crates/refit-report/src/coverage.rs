//! What was reached, what was not, and what is unknown.

use refit_run::{
    Coverage, FilterReport, InEffect, OtherDefinitions, Reached, RunReport, Unknown,
    UnreachedProgram,
};

use crate::format::{file_name, grouped, plural};

/// At most this many names in a list.
const MOST: usize = 8;

/// The lines about a run's coverage.
pub fn lines(report: &RunReport) -> Vec<String> {
    let coverage = &report.run.coverage;
    // Of a setting that is not in effect the reason has been reported.
    let is_reported = |scope: &String| {
        let mut settings = report.settings.iter();
        settings.any(|setting| {
            matches!(setting.in_effect, InEffect::Nowhere(_))
                && setting.setting.scoped_knob().as_ref() == Some(scope)
        })
    };
    let mut lines = unreached(coverage);
    lines.extend(filtered(coverage));
    lines.extend(unknown(coverage));
    lines.extend(others(coverage));
    lines.extend(scopes(coverage, is_reported));
    lines.extend(survivors(report));
    lines
}

/// What was not reached, and what cannot be known.
pub fn gaps(coverage: &Coverage) -> Vec<String> {
    let all = [
        unreached(coverage),
        unknown(coverage),
        others(coverage),
        scopes(coverage, |_| false),
    ];
    all.concat()
}

/// `ldconfig (static) ×50`
fn programs(programs: &[UnreachedProgram]) -> String {
    let parts: Vec<String> = programs
        .iter()
        .map(|program| {
            let times = if program.count > 1 {
                format!(" ×{}", grouped(program.count))
            } else {
                String::new()
            };
            format!("{} ({}){times}", file_name(&program.name), program.reason)
        })
        .collect();
    some(&parts)
}

fn unreached(coverage: &Coverage) -> Vec<String> {
    let mut lines = Vec::new();
    if !coverage.unreached.is_empty() {
        lines.push(format!(
            "not reached, run as without refit: {}",
            programs(&coverage.unreached)
        ));
    }
    if let Some(FilterReport::Refused(reason)) = &coverage.seccomp
        && !coverage.unreached.is_empty()
    {
        lines.push(format!(
            "seccomp, which would reach them, is not available: {reason}"
        ));
    }
    lines
}

/// What seccomp reached, and what went other than it should.
fn filtered(coverage: &Coverage) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(FilterReport::Installed(reached)) = &coverage.seccomp else {
        return lines;
    };
    if !reached.programs.is_empty() {
        let uncounted = if answers_uncounted(reached) {
            "; the kernel answers their syncs with 0, uncounted"
        } else {
            ""
        };
        lines.push(format!(
            "reached by seccomp: {}{uncounted}",
            programs(&reached.programs)
        ));
    }
    if !reached.has_listener {
        let why = if reached.at_exec {
            "their opens with O_SYNC are real, and not counted; --backend seccomp reaches them"
        } else {
            "another seccomp listener is installed: opens with O_SYNC that the preload does not \
             reach are real, and not counted"
        };
        lines.push(why.to_owned());
    }
    for (n, word, what) in [
        (
            reached.left_synchronous,
            "open",
            "left synchronous, since they could not be emulated exactly",
        ),
        (
            reached.crowded,
            "call",
            "real, since too many were in progress at once",
        ),
        (
            reached.released,
            "call",
            "real, since refit's guardian was killed",
        ),
        (
            reached.listeners_refused,
            "program",
            "tried to install a seccomp listener, and the kernel allows only one: use --backend preload",
        ),
    ] {
        if n > 0 {
            lines.push(format!("{} {what}", plural(n, word)));
        }
    }
    lines
}

/// Whether syncs of what only the filter reached are not in the counts.
pub fn answers_uncounted(reached: &Reached) -> bool {
    reached.answers == "kernel"
}

fn unknown(coverage: &Coverage) -> Vec<String> {
    let line = |unknown: &Unknown| {
        let n = unknown.count;
        let program = unknown
            .executable
            .as_deref()
            .map_or("some program", file_name);
        match unknown.what.as_str() {
            "io_uring" => format!(
                "unknown: {program} set up {}; syncs in it are not seen",
                plural(n, "io_uring ring")
            ),
            "own syscall instructions" => {
                format!(
                    "unknown: {program} makes system calls by its own instructions; syncs among them are not seen (as root, --backend seccomp reaches them)"
                )
            }
            "answered by the kernel" => format!(
                "unknown: {program} makes system calls by its own instructions; the kernel answers the syncs among them with 0, uncounted (--backend seccomp counts them)"
            ),
            "own seccomp filter" => format!(
                "unknown: {program} installed a seccomp filter; from then on the preload left its calls alone, and did not time them"
            ),
            "never reported" => format!(
                "unknown: {} should have reported and did not",
                plural(n, "program")
            ),
            "foreign report" => format!(
                "unknown: {} of a user that no program of this run ran as; not counted",
                plural(n, "report")
            ),
            _ => format!(
                "unknown: {} not reached, of unknown name",
                plural(n, "program")
            ),
        }
    };
    coverage.unknown.iter().map(line).collect()
}

/// Libraries of the program's own that define what refit intercepts: a line for each set of functions.
fn others(coverage: &Coverage) -> Vec<String> {
    let mut lines: Vec<String> = coverage.others.iter().flat_map(other).collect();
    lines.dedup();
    lines
}

fn other(other: &OtherDefinitions) -> Vec<String> {
    let library = file_name(&other.library);
    let mut lines = Vec::new();
    if !other.passed_on.is_empty() {
        lines.push(format!(
            "{library} defines {} too: calls that refit does not answer go there, and what it makes of them is not known",
            other.passed_on.join(", ")
        ));
    }
    if !other.skipped.is_empty() {
        lines.push(format!(
            "{library} defines {} too, and is not called for that under refit",
            other.skipped.join(", ")
        ));
    }
    lines
}

/// Whether real calls may have been answered by a library of the program's own.
pub fn passes_on(coverage: &Coverage) -> bool {
    let mut others = coverage.others.iter();
    others.any(|other| !other.passed_on.is_empty())
}

fn survivors(report: &RunReport) -> Option<String> {
    let parts: Vec<String> = report
        .run
        .survivors
        .iter()
        .map(|s| format!("{} (pid {})", file_name(&s.executable), s.pid))
        .collect();
    let text = format!("still running, as they were started: {}", some(&parts));
    (!parts.is_empty()).then_some(text)
}

/// Calls whose file is unknown, and scopes that matched nothing.
fn scopes(coverage: &Coverage, is_reported: impl Fn(&String) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    if coverage.path_unknown > 0 {
        lines.push(format!(
            "real, since their file is unknown (a chroot, no /proc, or memory that cannot be read): {}",
            plural(coverage.path_unknown, "call")
        ));
    }
    if coverage.not_delayed > 0 {
        lines.push(format!(
            "not delayed: {} with O_SYNC, O_DSYNC or RWF_SYNC went to the real disk only",
            plural(coverage.not_delayed, "open or write")
        ));
    }
    let unmatched = coverage.unmatched_scopes.iter();
    let unmatched: Vec<String> = unmatched
        .filter(|scope| !is_reported(scope))
        .cloned()
        .collect();
    if !unmatched.is_empty() {
        lines.push(format!("matched nothing: {}", some(&unmatched)));
    }
    lines
}

/// The first names of a list, and how many more there are.
pub fn some(parts: &[String]) -> String {
    let shown = parts
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if parts.len() > MOST {
        format!("{shown} and {} more (--json names all)", parts.len() - MOST)
    } else {
        shown
    }
}
