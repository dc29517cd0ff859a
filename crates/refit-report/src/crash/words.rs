//! The sentences of a crash report, the same in every format.

use refit_crash::CrashReport;
use refit_crash::report::{Mode, Role, Tally};

use crate::format::{count, duration};

/// Digits in groups.
#[expect(clippy::cast_precision_loss, reason = "counts of states are small")]
pub fn number(n: usize) -> String {
    count(n as f64)
}

/// What a mode's cuts say, in a few words.
pub fn verdict(mode: &Mode, tally: &Tally) -> String {
    let found = tally.bad_images > 0;
    match (mode.role, found) {
        (Role::Control, true) => "loses: the check can see a loss".to_owned(),
        (Role::Control, false) => "INVALID RUN: nothing was lost".to_owned(),
        (_, false) => format!("no loss found in {} cuts", number(tally.cuts)),
        (Role::Baseline, true) => "the program itself loses".to_owned(),
        (Role::Candidate, true) if mode.may_lose => "loses, as its class says".to_owned(),
        (Role::Candidate, true) => "LOSES WHAT ITS CLASS FORBIDS".to_owned(),
    }
}

/// `3 of 812`
pub fn worst(tally: &Tally) -> String {
    let (lost, of) = tally.worst;
    if tally.with_loss == 0 {
        "0".to_owned()
    } else {
        format!("{} of {}", number(lost), number(of))
    }
}

/// The age of the oldest loss.
#[expect(clippy::cast_precision_loss, reason = "it is shown with three digits")]
pub fn oldest(tally: &Tally) -> String {
    tally
        .oldest_ns
        .map_or("–".to_owned(), |ns| duration(ns as f64))
}

/// What was lost otherwise.
pub fn otherwise(tally: &Tally) -> String {
    let parts = [
        (tally.with_holes, "with holes"),
        (tally.damaged, "damaged"),
        (tally.resurrected, "resurrected"),
        (tally.unmountable, "did not mount"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{} {what}", number(*n)))
        .collect();
    if said.is_empty() {
        "–".to_owned()
    } else {
        said.join(", ")
    }
}

/// What is beneath the table.
pub fn notes(report: &CrashReport) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = &report.invalid {
        notes.push(format!("INVALID RUN: {why}"));
    }
    let options = &report.filesystem.options;
    let options = if options.is_empty() {
        String::new()
    } else {
        format!(" ({options})")
    };
    notes.push(format!(
        "{}{options} on {}; seed {:#x}; torn in blocks of {} bytes",
        report.filesystem.kind.name(),
        report.kernel,
        report.seed,
        report.tear_bytes
    ));
    for mode in &report.modes {
        let tally = mode.tally();
        if let (Some(state), true) = (&tally.worst_state, mode.role != Role::Control) {
            notes.push(format!(
                "{}: worst state: refit crash open {}/{}/{state}",
                mode.name, report.directory, mode.record.name
            ));
        }
    }
    notes.push("a loss found is proof: this image is legal for a disk that honours flushes. No loss in n cuts is only that".to_owned());
    notes.push(
        "not tested: your disk itself, other kernels and file systems, the cuts between these"
            .to_owned(),
    );
    notes
}
