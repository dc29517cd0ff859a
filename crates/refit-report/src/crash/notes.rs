//! The sentences beneath the table: what it takes to believe it, or not to.

use std::collections::BTreeSet;

use refit_crash::CrashReport;
use refit_crash::mode::{Harm, Role, State};
use refit_crash::tally::Tally;
use refit_run::{InEffect, Reasons, SettingReport, WhyNot};

use super::row::{Row, age, plural_images, reopen, takes_everything};
use crate::coverage::gaps;
use crate::durability;
use crate::format::{self, grouped};
use crate::notes::{Note, note};
use crate::paint::Tone;
use crate::run_summary;

/// Findings of the durability check that are told.
const MOST_UNCOVERED: usize = 3;

/// In their order; those labelled `warning:` doubt the result.
pub fn notes(report: &CrashReport, rows: &[Row]) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(why) = &report.invalid {
        let text = format!(
            "{}; let the program write and acknowledge for longer, or see that --check prints only what it finds",
            why
        );
        return vec![
            note("INVALID RUN:", Tone::Bad, text),
            note("", Tone::Plain, place(report)),
        ];
    }
    notes.extend(own_loss(rows));
    notes.extend(uncovered(rows));
    notes.extend(rows.iter().filter_map(manner));
    notes.extend(rows.iter().filter_map(|row| bound(report, row)));
    notes.extend(zeros(rows));
    notes.extend(rows.iter().filter_map(|row| worst(report, row)));
    notes.push(note("", Tone::Plain, place(report)));
    notes.push(note(
        "",
        Tone::Plain,
        "cuts that left the same image count as one. A loss that was found is proof: a disk that honours its \
         flushes may hold that image"
            .to_owned(),
    ));
    notes.push(note(
        "not tested:",
        Tone::Plain,
        "your disk itself, other kernels and file systems, cuts at other moments".to_owned(),
    ));
    notes.extend(blind(report));
    notes.extend(rows.iter().flat_map(not_in_effect));
    notes.extend(rows.iter().filter_map(unreached));
    notes.extend(rows.iter().filter_map(flushed_by_others));
    notes
}

/// The check says nothing of what is inside of files.
fn blind(report: &CrashReport) -> Option<Note> {
    let text = "the check does not look into the files: on the intact image it also found everything after two blocks of \
                each file had been written in half. What a cut damages inside of a file is not told; let --check \
                compare contents";
    (report.sees_torn_blocks == Some(false))
        .then(|| note("warning:", Tone::Unsure, text.to_owned()))
}

/// What no sync of the program itself covers (docs/durability.md): where a loss of its own comes from, or what no cut has
/// shown.
fn uncovered(rows: &[Row]) -> Vec<Note> {
    let baseline = rows.iter().find(|row| row.mode.role == Role::Baseline);
    let Some((row, report)) = baseline.and_then(|row| Some((row, row.mode.durability.as_ref()?)))
    else {
        return Vec::new();
    };
    let found: Vec<String> = durability::uncovered(report).collect();
    let has_loss = row.mode.states.iter().any(State::is_bad);
    let label = match has_loss {
        true => "not covered by a sync:",
        false => "not covered by a sync, and not shown by these cuts:",
    };
    if found.is_empty() && has_loss && report.events > 0 {
        let text = "the durability check saw no write or name that no sync covers: it cannot tell where the loss comes from";
        return vec![note("", Tone::Plain, text.to_owned())];
    }
    let unseen = row.mode.run.as_ref().and_then(durability::unseen_syncs);
    let unseen = unseen.filter(|_| !found.is_empty());
    let few = found.into_iter().take(MOST_UNCOVERED);
    let few = few.map(|text| note(label, Tone::Unsure, text));
    let doubt = unseen.map(|text| note("", Tone::Unsure, text));
    few.chain(doubt).collect()
}

/// Each candidate's class, where a table has no column for it.
pub fn classes(rows: &[Row]) -> Option<Note> {
    let named = rows.iter().filter(|row| !row.class.is_empty());
    let all: Vec<String> = named
        .map(|row| format!("{} {}", row.name, row.class))
        .collect();
    (!all.is_empty()).then(|| note("class:", Tone::Plain, all.join("; ")))
}

/// Printed first: what the baseline loses is not the fault of a variant.
fn own_loss(rows: &[Row]) -> Option<Note> {
    let row = rows.iter().find(|row| row.mode.role == Role::Baseline)?;
    let tally = &row.tally;
    let loss = match tally.oldest_ns {
        Some(oldest) => format!(
            "up to {} acknowledgements, up to {} old, ",
            row.worst,
            age(oldest)
        ),
        None => String::new(),
    };
    let text = format!(
        "the program itself loses data with everything on: {loss}in {} images; {}. A kind of loss that the baseline \
         has too is not attributed to a variant",
        row.images,
        manners(row).join("; ")
    );
    (tally.bad_images > 0).then(|| note("baseline:", Tone::Bad, text))
}

/// In which manner a variant loses.
fn manner(row: &Row) -> Option<Note> {
    let text = manners(row).join("; ");
    (row.mode.role == Role::Candidate && row.tally.bad_images > 0)
        .then(|| note(&format!("{}:", row.name), Tone::Plain, text))
}

/// Whether the bound that the recipe declares was kept; a state that breaks it can be opened.
fn bound(report: &CrashReport, row: &Row) -> Option<Note> {
    let bound = row.mode.bound.as_ref()?;
    let broken = report.beyond_bound(row.mode);
    let images: BTreeSet<&str> = broken.iter().map(|state| &*state.image).collect();
    let all = plural_images(row.tally.images);
    let worst = broken.iter().max_by_key(|state| state.loss.oldest_ns);
    let (tone, text) = match worst {
        None => (Tone::Plain, format!("kept in {all}")),
        Some(state) => {
            let open = reopen(report, row.mode, &state.name);
            let broken = grouped(images.len());
            (Tone::Bad, format!("broken in {broken} of {all}: {open}"))
        }
    };
    let text = format!("{} of {}: {text}", bound.text, row.name);
    Some(note("bound:", tone, text))
}

/// A window is only true where just the newest is gone.
fn manners(row: &Row) -> Vec<String> {
    let Row { tally, mode, .. } = row;
    let mut parts: Vec<String> = MANNERS
        .iter()
        .filter_map(|(harm, words)| {
            let images = tally.harms.get(harm)?;
            let all = plural_images(tally.images);
            Some(format!("in {} of {all} {words}", grouped(*images)))
        })
        .collect();
    if let (true, Some(oldest)) = (parts.is_empty(), tally.oldest_ns) {
        parts.push(if takes_everything(mode) {
            format!(
                "everything that was acknowledged is lost, up to {} old; a longer run would lose more",
                age(oldest)
            )
        } else {
            format!(
                "only the newest was lost, in these cuts never older than {}",
                age(oldest)
            )
        });
    }
    let mut states = mode.states.iter();
    if let Some(why) = states.find_map(|state| state.unmountable.as_ref()) {
        parts.push(format!("the kernel reported: {}", why));
    }
    parts
}

const MANNERS: [(Harm, &str); 4] = [
    (
        Harm::Hole,
        "something older is lost while something newer survived, so no time bounds the loss",
    ),
    (
        Harm::Damaged,
        "something survived only in part, or the whole is unusable",
    ),
    (
        Harm::Resurrected,
        "something is back whose removal was acknowledged",
    ),
    (Harm::Unmountable, "the file system did not mount"),
];

/// How strong the zeros are.
fn zeros(rows: &[Row]) -> Option<Note> {
    let zeros = rows.iter().filter(|row| {
        row.mode.role != Role::Control && row.tally.bad_images == 0 && row.tally.images > 0
    });
    let each: Vec<String> = zeros.map(|row| strength(&row.name, &row.tally)).collect();
    (!each.is_empty()).then(|| {
        let text = format!(
            "{}. That does not prove that none is possible",
            each.join("; ")
        );
        note("no loss found:", Tone::Plain, text)
    })
}

fn strength(name: &str, tally: &Tally) -> String {
    let cuts = format::plural(tally.cuts, "cut");
    let pending = if tally.with_pending == 0 {
        "no write was pending at any of them, so this shows little".to_owned()
    } else {
        let share = tally.with_pending as f64 / tally.cuts.max(1) as f64;
        format!("writes pending at {} of them", format::magnitude(share))
    };
    format!(
        "{name} in {} of {cuts} ({pending})",
        plural_images(tally.images)
    )
}

fn worst(report: &CrashReport, row: &Row) -> Option<Note> {
    let state = row.tally.worst_state.as_ref()?;
    if row.mode.role == Role::Control {
        return None;
    }
    let text = format!("{}: {}", row.name, reopen(report, row.mode, state));
    Some(note("worst state:", Tone::Plain, text))
}

/// Where it was, on one line.
fn place(report: &CrashReport) -> String {
    let filesystem = &report.filesystem;
    let options = match filesystem.options.as_str() {
        "" => String::new(),
        options => format!(" ({})", options),
    };
    let made = match report.mkfs.as_str() {
        "" => String::new(),
        version => format!(" by {}", version),
    };
    format!(
        "{}{options} of {}{made}, torn in blocks of {} bytes; {}; seed {}",
        filesystem.kind.name(),
        format::bytes(report.disk_bytes as f64),
        format::grouped(report.tear_bytes),
        report.kernel,
        format::seed(report.seed)
    )
}

/// Settings that were in effect in a part of the recorded run only, or nowhere.
fn not_in_effect<'a>(row: &'a Row) -> impl Iterator<Item = Note> + 'a {
    // What was not reached has a sentence of its own.
    let is_only_unreached = |one: &&SettingReport| match &one.in_effect {
        InEffect::Partly(Reasons(reasons)) => {
            matches!(reasons[..], [WhyNot::NotReached(_)])
        }
        _ => false,
    };
    let settings = row.mode.settings.iter();
    let told = settings
        .filter(move |one| !is_only_unreached(one))
        .filter_map(run_summary::not_in_effect);
    told.map(|text| note("warning:", Tone::Unsure, text))
}

/// What a variant did not swap, since refit was not there.
fn unreached(row: &Row) -> Option<Note> {
    let coverage = &row.mode.run.as_ref()?.coverage;
    let parts = gaps(coverage);
    let text = format!(
        "not everything was reached in the run with {}: {}",
        row.name,
        parts.join("; ")
    );
    (row.mode.role == Role::Candidate && !parts.is_empty() && !row.mode.is_idle())
        .then(|| note("warning:", Tone::Unsure, text))
}

/// sync(2) writes back every file system of the machine, the recorded one too.
fn flushed_by_others(row: &Row) -> Option<Note> {
    let calls = row.mode.record.outside_syncs.filter(|calls| *calls > 0)?;
    let text = format!(
        "{} of other processes of this machine flushed the disk in the run with {}: without them it may lose \
         more; repeat it when nothing else calls sync(2)",
        format::plural(calls, "sync call"),
        row.name
    );
    Some(note("warning:", Tone::Unsure, text))
}
