//! What has to be known with the table: the notes of the measurement, then those of the cuts.

use refit_lab::Comparison;
use refit_lab::experiment::Role;

use super::Proof;
use super::row::{Row, cuts};
use crate::crash;
use crate::notes::{Note, note};
use crate::paint::Tone;

/// In their order; those labelled `warning:` doubt the result.
pub fn notes(comparison: &Comparison, proof: &Proof, rows: &[Row]) -> Vec<Note> {
    let mut notes = crate::notes::notes(comparison);
    match proof {
        Proof::NotCut(why) => notes.push(note(
            "not cut:",
            Tone::Unsure,
            format!("no power cut was made, so nothing is known of what is lost: {why}"),
        )),
        Proof::Cut(report) => {
            notes.extend(uncut(rows));
            notes.extend(crash::notes::notes(report, &crash::row::rows(report)));
        }
    }
    notes
}

/// Whose power was not cut, and why.
fn uncut(rows: &[Row]) -> Option<Note> {
    let is_uncut = |row: &&Row| row.loss.is_none() && row.gain.variant.role == Role::Candidate;
    let parts: Vec<String> = rows
        .iter()
        .filter(is_uncut)
        .map(|row| {
            let why = match &row.gain.variant.disqualified {
                Some(_) => "disqualified".to_owned(),
                None => row.gain.variant.class.to_string(),
            };
            format!("{} ({why})", row.gain.name)
        })
        .collect();
    (!parts.is_empty()).then(|| note("not cut:", Tone::Plain, parts.join(", ")))
}

/// The notes of the cuts without the commands that open a state: a page has these elsewhere.
pub fn without_commands(proof: &Proof, notes: Vec<Note>) -> Vec<Note> {
    let has_states = cuts(proof).is_some();
    let is_kept = |note: &Note| !has_states || note.label != "worst state:";
    notes.into_iter().filter(is_kept).collect()
}
