//! A page of text: lines, and rows of a name and what belongs to it, under headings.
//! Whatever is put on it is made printable here.

use std::fmt::Write;

use refit_run::printable;

use crate::fold::fold;

/// Of the names of rows.
const NAME: usize = 14;
/// Of a text that is folded beside its name.
const TEXT: usize = 84;

/// The page.
#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    /// Begins a group of lines.
    pub fn heading(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.line(0, text);
    }

    /// A line, indented by two blanks for each step.
    pub fn line(&mut self, steps: usize, text: impl AsRef<str>) {
        let indent = 2 * steps;
        let _ = writeln!(self.0, "{:indent$}{}", "", printable(text.as_ref()));
    }

    /// The lines of a text with lines of its own.
    pub fn lines(&mut self, steps: usize, text: &str) {
        text.split_terminator('\n')
            .for_each(|line| self.line(steps, line));
    }

    /// A row.
    pub fn row(&mut self, name: &str, what: impl AsRef<str>) {
        self.line(1, format!("{name:<NAME$} {}", what.as_ref()));
    }

    /// A row with a text, in as many lines as it takes.
    pub fn folded(&mut self, name: &str, text: &str) {
        for (i, line) in fold(text, TEXT).iter().enumerate() {
            self.row(if i == 0 { name } else { "" }, line.trim_start());
        }
    }

    /// The text; every line ends with a newline.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}
