//! A crash report in a document: a table, and what has to be known with it.

use std::fmt::Write;

use refit_crash::CrashReport;

use super::notes::notes;
use super::row::{Row, rows};
use crate::format;
use crate::markdown::{code, escaped};

/// GitHub's Markdown.
#[must_use]
pub fn markdown(report: &CrashReport) -> String {
    let mut out = String::new();
    let command = format::command_line(&report.command);
    let _ = writeln!(out, "**refit crash** {}\n", code(&command));
    out.push_str(
        "| mode | worst loss | oldest | verdict | bad images | how | cuts | acked | class |\n",
    );
    out.push_str("|:--|--:|--:|:--|--:|:--|--:|--:|:--|\n");
    let rows = rows(report);
    for row in &rows {
        let _ = writeln!(out, "| {} |", cells(row).join(" | "));
    }
    out.push('\n');
    for note in notes(report, &rows) {
        let label = match note.label.as_str() {
            "" => String::new(),
            label => format!("**{}** ", escaped(label)),
        };
        let _ = writeln!(out, "- {label}{}", escaped(&note.text));
    }
    let _ = writeln!(
        out,
        "- refit {}, {} UTC",
        escaped(&format::printable(&report.refit)),
        format::date(report.started)
    );
    out
}

fn cells(row: &Row) -> [String; 9] {
    [
        code(&row.name),
        row.worst.clone(),
        row.oldest.clone(),
        format!("**{}**", escaped(&row.verdict)),
        row.images.clone(),
        escaped(&row.how),
        row.cuts.clone(),
        row.acknowledged.clone(),
        escaped(&row.class),
    ]
}
