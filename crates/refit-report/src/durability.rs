//! What the durability check found: in sentences, as lines of the summary, and as SARIF.

mod html;
mod junit;
mod sarif;

use std::collections::BTreeSet;

use refit_run::{
    AcknowledgedBy, CUT, Circumstance, Coverage, DurabilityReport, Finding, Level, Run, RunReport,
    Testimony, WrongSync, escaped,
};

use crate::format::{bytes, file_name, grouped, plural};
use crate::stacks::call_chain;

pub use html::html;
pub use junit::junit;
pub use sarif::sarif;

/// Functions of a call, the innermost first.
const MOST_FUNCTIONS: usize = 4;
/// Notes that are printed; a page and the JSON have all.
const MOST_NOTES: usize = 3;
/// Findings of each other level that are printed.
const MOST_FINDINGS: usize = 20;

/// What happened, and what a power cut makes of it, in one sentence.
#[must_use]
pub fn sentence(finding: &Finding) -> String {
    let name = file_name(&finding.path);
    let when = match finding.acknowledged {
        Some(AcknowledgedBy::Write) => "when something was acknowledged",
        Some(AcknowledgedBy::Exit) => "when the command ended with 0",
        None => "when it was renamed",
    };
    let shown = shown(finding);
    match &finding.circumstance {
        Circumstance::RenamedFrom(old) => format!(
            "{} was renamed over {name} with data that no sync covers: after a power cut {name} may be empty, torn or old \
             ({shown})",
            file_name(old)
        ),
        Circumstance::Name(what) => format!(
            "{name} was {what}, and its directory was not synced {when}: a power cut takes that back ({shown})"
        ),
        Circumstance::NameOfSynced(what) => format!(
            "{name} was {what}, and its directory was not synced {when}; the file itself was ({shown})"
        ),
        Circumstance::OtherDirectorySynced(other) => format!(
            "{name} lies in a directory that was not synced {when}; {other} was, which has nothing to do with it ({shown})"
        ),
        Circumstance::Written => format!(
            "no sync covers what was written to {name} {when}: a power cut may take it ({shown})"
        ),
        Circumstance::Truncated(size) => format!(
            "{} of {name} were truncated to be written again: a power cut before the next sync may leave it empty or \
             partial ({shown})",
            bytes(*size as f64)
        ),
        Circumstance::ReplacedBy(new) => format!(
            "{name} was removed before {} was durable: a power cut may leave neither ({shown})",
            match file_name(new) == name {
                true => "the file that replaces it",
                false => file_name(new),
            }
        ),
        Circumstance::SyncedLater(later) => format!(
            "{name} was written before {}, and only the second one was synced: a power cut may keep it without the first \
             ({shown})",
            file_name(later)
        ),
        Circumstance::Failed(error) => format!(
            "a sync of {name} failed with {error}, and the program went on as if it had not: what it was to write is not \
             on the disk"
        ),
        Circumstance::Retried(error) => format!(
            "a sync of {name} failed with {error} and was repeated without writing the data again: the second one \
             succeeds, and the data is not on the disk"
        ),
        Circumstance::NotCoveredBy(wrong) => format!(
            "{} does not make {name} durable, and no other sync covered it {when} ({shown})",
            call(*wrong)
        ),
    }
}

/// Where power cuts have shown it.
fn shown(finding: &Finding) -> String {
    let Some(shown) = &finding.shown_on else {
        return "no power cuts were made of this".to_owned();
    };
    let (on, not_on): (Vec<&str>, Vec<&str>) = CUT
        .iter()
        .partition(|name| shown.iter().any(|one| one == *name));
    match (on.is_empty(), not_on.is_empty()) {
        (true, _) => format!(
            "power cuts on {} have shown no loss, which nothing promises",
            all_of(&not_on)
        ),
        (_, true) => format!("power cuts on {} have shown it", all_of(&on)),
        _ => format!(
            "power cuts on {} have shown it, on {} not",
            all_of(&on),
            all_of(&not_on)
        ),
    }
}

/// `ext4, xfs and btrfs`.
fn all_of(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// For people.
fn call(wrong: WrongSync) -> &'static str {
    match wrong {
        WrongSync::Range => "sync_file_range",
        WrongSync::AsyncMap => "msync with MS_ASYNC",
        WrongSync::Stream => "a sync before the stream was flushed",
        WrongSync::Directory => "a sync of its directory",
    }
}

/// `replaced-unsynced: /srv/app/state.json (ext4), 3 times`.
fn title(finding: &Finding) -> String {
    let mut text = format!("{}: {}", finding.rule.name(), finding.path);
    if let Some(name) = &finding.file_system {
        text += &format!(" ({name})");
    }
    if finding.paths > 1 {
        text += &format!(" and {} more", plural(finding.paths - 1, "path"));
    }
    if finding.count > finding.paths {
        text += &format!(", {} times", grouped(finding.count));
    }
    text
}

/// The lines of a run; `with_findings`: each of them too, and not only how many there are.
pub(crate) fn lines(report: &RunReport, with_findings: bool, lines: &mut Vec<String>) {
    if let Some(durability) = &report.durability {
        lines.push(format!("durability: {}", summary(durability)));
        if with_findings {
            findings(durability, lines);
        }
        gaps(durability, lines);
        not_seen(&report.run.coverage, lines);
        lines.extend(unseen_syncs(&report.run).map(|text| format!("  {text}")));
    }
}

/// Durable calls that the kernel saw and the durability check did not: they may cover what it calls uncovered.
pub(crate) fn unseen_syncs(run: &Run) -> Option<String> {
    let Some(Testimony::Seen(seen)) = &run.witness else {
        return None;
    };
    let unseen = escaped(run, seen);
    let calls = unseen
        .iter()
        .fold(0_u64, |all, one| all.saturating_add(one.calls));
    let names = unseen
        .iter()
        .map(|one| one.executable.as_deref().map_or("?", file_name));
    let names: BTreeSet<&str> = names.collect();
    let names: Vec<&str> = names.into_iter().collect();
    (calls > 0).then(|| {
        format!(
            "the kernel saw {} of {} that the durability check did not see: what it found of {} files may be wrong",
            plural(calls, "durable call"),
            names.join(", "),
            if names.len() == 1 { "its" } else { "their" }
        )
    })
}

/// Whose changes of files nobody told.
fn not_seen(coverage: &Coverage, lines: &mut Vec<String>) {
    let missing = coverage
        .processes_seen
        .saturating_sub(coverage.processes_reached);
    if missing > 0 {
        lines.push(format!(
            "  {} of {} not reached: what they do to files is seen by size and time alone, where another one names or syncs it",
            grouped(missing),
            plural(coverage.processes_seen, "process")
        ));
    }
    let mut own: Vec<&str> = coverage
        .unknown
        .iter()
        .filter_map(|unknown| Some(file_name(unknown.executable.as_deref()?)))
        .collect();
    own.dedup();
    if !own.is_empty() {
        lines.push(format!(
            "  {} may write and sync by calls that are not seen ({}): what is found of {} files may be wrong",
            own.join(", "),
            coverage.unknown[0].what,
            if own.len() == 1 { "its" } else { "their" }
        ));
    }
}

fn findings(report: &DurabilityReport, lines: &mut Vec<String>) {
    for level in [Level::Error, Level::Warning, Level::Note] {
        let found: Vec<&Finding> = report
            .new_findings()
            .filter(|finding| finding.level == level)
            .collect();
        let most = match level {
            Level::Note => MOST_NOTES,
            _ => MOST_FINDINGS,
        };
        found
            .iter()
            .take(most)
            .for_each(|one| of_finding(one, lines));
        if found.len() > most {
            lines.push(format!(
                "  {} more: --json FILE has all",
                plural(found.len() - most, level.name())
            ));
        }
    }
}

/// Errors and warnings, each with its rule, sentence and place in one line; those of one function once.
pub(crate) fn uncovered(report: &DurabilityReport) -> impl Iterator<Item = String> {
    let mut seen = BTreeSet::new();
    let heavy = report.findings.iter().filter(move |finding| {
        finding.level != Level::Note && seen.insert((finding.rule, finding.at.last()))
    });
    heavy.map(|finding| {
        let frames: Vec<_> = finding.at.iter().collect();
        let place = match frames.is_empty() {
            true => String::new(),
            false => format!("; at {}", call_chain(&frames, MOST_FUNCTIONS)),
        };
        format!("{}: {}{place}", finding.rule.name(), sentence(finding))
    })
}

/// How much was found, of how much.
fn summary(report: &DurabilityReport) -> String {
    let count = |level| {
        let of_level = report.new_findings().filter(|one| one.level == level);
        of_level.count()
    };
    let counts = [Level::Error, Level::Warning, Level::Note].map(|level| (level, count(level)));
    let some: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(level, count)| plural(count, level.name()))
        .collect();
    let known = report.findings.iter().filter(|one| one.is_known).count();
    let known = match known {
        0 => String::new(),
        known => format!(", {} known before", grouped(known)),
    };
    let of = format!(
        "in {} of {}",
        plural(report.events, "file event"),
        plural(report.programs, "program")
    );
    match (report.events, some.is_empty()) {
        (0, _) => "nothing was seen of what was done to files".to_owned(),
        (_, true) => format!("nothing found {of}{known}"),
        (_, false) => format!("{} {of}{known}", some.join(", ")),
    }
}

fn of_finding(finding: &Finding, lines: &mut Vec<String>) {
    lines.push(format!("  {}: {}", finding.level.name(), title(finding)));
    lines.push(format!("    {}", sentence(finding)));
    let places = [("at", &finding.at), ("written at", &finding.written_at)];
    for (what, frames) in places {
        if !frames.is_empty() {
            let frames: Vec<_> = frames.iter().collect();
            lines.push(format!(
                "    {what} {}",
                call_chain(&frames, MOST_FUNCTIONS)
            ));
        }
    }
    if finding.level != Level::Note {
        lines.push(format!("    instead: {}", finding.rule.instead()));
    }
}

/// What the check cannot say.
fn gaps(report: &DurabilityReport, lines: &mut Vec<String>) {
    if report.lost > 0 {
        lines.push(format!(
            "  {} could not be read: something may be missing here",
            plural(report.lost, "event")
        ));
    }
    if let Some(first) = report.unknown.first() {
        lines.push(format!(
            "  {} mapped to be written, and not synced since: what they hold is not known ({first})",
            match report.unknown.len() {
                1 => "1 file is".to_owned(),
                many => format!("{} files are", grouped(many)),
            }
        ));
    }
    if report.volatile > 0 {
        lines.push(format!(
            "  {} on tmpfs, which no reboot outlives, not judged: TMPDIR=/var/tmp moves temporary ones to a disk",
            plural(report.volatile, "file")
        ));
    }
    if report.ignored > 0 {
        lines.push(format!(
            "  {} left out: logs, locks, caches and what --ignore names",
            plural(report.ignored, "file")
        ));
    }
    if report.idle_syncs > 0 {
        lines.push(format!(
            "  {} of {} had nothing to write, as far as was seen",
            grouped(report.idle_syncs),
            plural(report.syncs, "sync")
        ));
    }
    if report.unnamed_syncs > 0 {
        lines.push(format!(
            "  {} of {} were of files without a name, of which nothing is left after a power cut",
            grouped(report.unnamed_syncs),
            plural(report.syncs, "sync")
        ));
    }
    removed_syncs(report, lines);
}

/// Whether they are needed depends on who reads such a file after a power cut.
fn removed_syncs(report: &DurabilityReport, lines: &mut Vec<String>) {
    let Some(most) = report.removed_syncs.first() else {
        return;
    };
    let all: u64 = report.removed_syncs.iter().map(|one| one.syncs).sum();
    lines.push(format!(
        "  {} of {} were of files that were removed again ({}{}): needed only by who reads them after a power cut before that, as a journal or a queue",
        grouped(all),
        plural(report.syncs, "sync"),
        if report.removed_syncs.len() > 1 { "most in " } else { "in " },
        most.directory,
    ));
    // Of no other file there.
    if most.syncs == most.of {
        lines.push(format!(
            "    what they cost: refit compare 'sync@{}=off' -- COMMAND; what that risks: refit crash",
            most.directory
        ));
    }
}
