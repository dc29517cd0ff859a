//! What stands beneath a table: everything that a reader needs in order to
//! believe it, or not to.

mod conduct;
mod verdicts;
mod waits;
mod witness;

use refit_lab::experiment::Experiment;
use refit_lab::{Comparison, Warning};
use refit_run::printable;

use crate::answers::is_exact;
use crate::fold::fold;
use crate::paint::{Style, Tone};
use crate::row::rows;

pub use conduct::summary;
use conduct::{failed, gates, interrupted, left_out, slot_effect};
use verdicts::{
    confirmed, disqualified, in_part, inconclusive, ranges, secondary, unavailable, weight,
};
use waits::waiting;

/// One line.
pub struct Note {
    /// What it is about, with its punctuation; may be empty.
    pub label: String,
    /// What the label says.
    pub tone: Tone,
    /// The line itself.
    pub text: String,
}

impl Note {
    /// In lines that fit, its label painted.
    pub fn lines(&self, style: &Style) -> Vec<String> {
        if self.label.is_empty() {
            return fold(&self.text, style.width);
        }
        let mut lines = fold(&format!("{} {}", self.label, self.text), style.width);
        if let Some(rest) = lines[0].strip_prefix(&self.label) {
            lines[0] = self.tone.paint(&self.label, style.colour) + rest;
        }
        lines
    }
}

/// All notes in their order, warnings last.
pub fn notes(experiment: &Comparison) -> Vec<Note> {
    let rows = rows(experiment);
    let mut notes = Vec::new();
    if !is_exact(experiment) {
        notes.extend(waiting(experiment));
    }
    for row in &rows {
        notes.extend(secondary(experiment, row));
    }
    notes.extend(unavailable(experiment));
    notes.extend(ranges(experiment));
    for row in &rows {
        notes.extend(disqualified(row));
        notes.extend(in_part(row));
        notes.extend(inconclusive(experiment, row));
    }
    let weights = rows.iter().filter_map(|row| weight(experiment, row));
    notes.extend(weights);
    notes.push(note("", Tone::Plain, summary(experiment)));
    notes.extend(witness::witness(experiment));
    notes.extend(failed(experiment));
    notes.extend(interrupted(experiment));
    notes.extend(left_out(experiment));
    notes.extend(slot_effect(experiment));
    notes.extend(gates(experiment));
    if let Some(confirmation) = &experiment.confirmation {
        notes.extend(confirmed(confirmation));
        let warnings = confirmation.warnings.iter();
        notes.extend(
            warnings
                .filter(|w| !experiment.warnings.contains(w))
                .map(warning),
        );
    }
    notes.extend(experiment.warnings.iter().map(warning));
    notes
}

/// Each candidate's class, where a table has no column for it.
pub fn classes(experiment: &Comparison) -> Option<Note> {
    let rows = rows(experiment);
    let mut parts: Vec<(&str, String)> = Vec::new();
    for row in rows.iter().filter(|row| !row.class.is_empty()) {
        match parts.iter_mut().find(|(class, _)| *class == row.class) {
            Some((_, names)) => *names = format!("{names}, {}", row.name),
            None => parts.push((&row.class, row.name.clone())),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(class, names)| format!("{class}: {names}"))
        .collect();
    (!parts.is_empty()).then(|| note("class", Tone::Plain, parts.join("; ")))
}

/// The settings under every variant.
pub fn with(experiment: &Experiment) -> Option<Note> {
    let parts: Vec<String> = experiment
        .with
        .iter()
        .map(|with| format!("{} ({})", with.setting, with.class))
        .collect();
    (!parts.is_empty()).then(|| {
        note(
            "with",
            Tone::Plain,
            format!("{} under every variant", parts.join(" ")),
        )
    })
}

/// One line of these parts.
pub fn note(label: &str, tone: Tone, text: String) -> Note {
    Note {
        label: printable(label),
        tone,
        text: printable(&text),
    }
}

fn warning(warning: &Warning) -> Note {
    let text = format!("{}; {}", warning.text, warning.action);
    note("warning:", Tone::Unsure, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    pub fn texts(experiment: &Comparison) -> Vec<String> {
        let line = |note: Note| {
            format!("{} {}", note.label, note.text)
                .trim_start()
                .to_owned()
        };
        notes(experiment).into_iter().map(line).collect()
    }

    pub fn has(experiment: &Comparison, line: &str) {
        let lines = texts(experiment);
        assert!(
            lines.iter().any(|l| l == line),
            "{line}\nis not in\n{}",
            lines.join("\n")
        );
    }

    #[test]
    fn warnings_come_last_and_those_of_the_confirmation_too() {
        let mut experiment = sample::experiment();
        let mut again = sample::confirmation();
        again.warnings = experiment.warnings.clone();
        again.warnings.push(Warning {
            text: "the governor changed".to_owned(),
            action: "repeat it".to_owned(),
        });
        experiment.confirmation = Some(Box::new(again));
        let lines = texts(&experiment);
        assert_eq!(
            lines[lines.len() - 2..],
            [
                "warning: the governor changed; repeat it",
                "warning: the load of the machine went from 0.3 to 4.1; repeat it when nothing else runs",
            ]
        );
    }

    #[test]
    fn classes_are_grouped_and_settings_of_all_are_named() {
        let experiment = sample::experiment();
        assert_eq!(
            classes(&experiment).unwrap().text,
            "loses-on-crash: sync=off; safe: malloc=jemalloc, thp=never"
        );
        assert_eq!(
            with(&experiment).unwrap().text,
            "disk=8ms (changes-behaviour) under every variant"
        );
    }
}
