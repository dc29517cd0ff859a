//! A crash report as text: on a terminal, and in Markdown.

use refit_crash::CrashReport;

use super::notes::{classes, notes};
use super::row::{rows, table};
use super::sentence::sentence;
use crate::fold::fold;
use crate::markdown::{code, grid, in_markdown, noted, origin, warned};
use crate::notes::warnings_apart;
use crate::paint::Style;

/// The answer, the table, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(report: &CrashReport, style: &Style) -> String {
    let rows = rows(report);
    let table = table(&rows).terminal(style);
    let mut lines = fold(&sentence(report, &rows), style.width);
    lines.extend(fold(&super::row::program(report), style.width));
    let (warnings, notes) = warnings_apart(notes(report, &rows));
    lines.extend(warnings.iter().flat_map(|note| note.lines(style)));
    lines.extend(table.lines);
    let classes = classes(&rows).filter(|_| !table.names_class);
    let notes = classes.into_iter().chain(notes);
    lines.extend(notes.flat_map(|note| note.lines(style)));
    lines.push(String::new());
    lines.join("\n")
}

/// GitHub's Markdown.
#[must_use]
pub fn markdown(report: &CrashReport) -> String {
    let rows = rows(report);
    let command = super::row::program(report);
    let (warnings, notes) = warnings_apart(notes(report, &rows));
    [
        format!("{}\n\n", in_markdown(&sentence(report, &rows))),
        format!("**refit crash** {}\n", code(&command)),
        warned(&warnings),
        "\n".to_owned(),
        grid(&table(&rows).columns()),
        "\n".to_owned(),
        noted(&notes),
        origin(&report.refit, report.started),
    ]
    .concat()
}
