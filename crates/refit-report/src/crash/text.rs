//! A crash report as text: on a terminal, and in Markdown.

use refit_crash::CrashReport;

use super::notes::{classes, notes};
use super::row::{rows, table};
use super::sentence::sentence;
use crate::fold::fold;
use crate::markdown::{code, grid, in_markdown, noted, origin};
use crate::paint::Style;

/// The answer, the table, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(report: &CrashReport, style: &Style) -> String {
    let rows = rows(report);
    let table = table(&rows).terminal(style);
    let mut lines = fold(&sentence(report, &rows), style.width);
    lines.extend(fold(&super::row::program(report), style.width));
    lines.extend(table.lines);
    let classes = classes(&rows).filter(|_| !table.names_class);
    let notes = classes.into_iter().chain(notes(report, &rows));
    lines.extend(notes.flat_map(|note| note.lines(style)));
    lines.push(String::new());
    lines.join("\n")
}

/// GitHub's Markdown.
#[must_use]
pub fn markdown(report: &CrashReport) -> String {
    let rows = rows(report);
    let command = super::row::program(report);
    [
        format!("{}\n\n", in_markdown(&sentence(report, &rows))),
        format!("**refit crash** {}\n\n", code(&command)),
        grid(&table(&rows).columns()),
        "\n".to_owned(),
        noted(&notes(report, &rows)),
        origin(&report.refit, report.started),
    ]
    .concat()
}
