//! One note, as every format has it.

use refit_run::printable;

use crate::fold::fold;
use crate::paint::{Style, Tone};

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
    /// Whether it weakens the numbers: then it stands before them.
    pub fn is_warning(&self) -> bool {
        ["warning:", "INVALID RUN:"].contains(&&*self.label)
    }

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

/// The warnings, and all others.
pub fn warnings_apart(notes: Vec<Note>) -> (Vec<Note>, Vec<Note>) {
    notes.into_iter().partition(Note::is_warning)
}

/// One line of these parts.
pub fn note(label: &str, tone: Tone, text: String) -> Note {
    Note {
        label: printable(label),
        tone,
        text: printable(&text),
    }
}
