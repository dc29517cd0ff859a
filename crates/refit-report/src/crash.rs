//! A crash report, drawn: a [`CrashReport`] in, text or a page out.
//!
//! Promises, beside those of the crate: a loss of the program itself is told
//! before a variant is blamed, and how little a zero says is told with it.

pub(crate) mod html;
pub(crate) mod notes;
pub(crate) mod row;
pub(crate) mod sentence;
mod text;

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;

pub use html::html;
pub use text::{markdown, terminal};

pub use refit_crash::CrashReport;

use refit_crash::mode::Role;

/// What cuts took of each variant: its name, what they took, and whether its class forbids that.
#[must_use]
pub fn taken(report: &CrashReport) -> Vec<(String, String, bool)> {
    let rows = row::rows(report);
    let candidates = rows.iter().filter(|row| row.mode.role == Role::Candidate);
    let taken = candidates.map(|row| {
        let breaks = report.breaks_class(row.mode);
        let text = format!("{}{}", sentence::takes(row), sentence::judged(row, breaks));
        (row.mode.name.clone(), text, breaks)
    });
    taken.collect()
}
