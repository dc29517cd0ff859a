//! For a pull request: a table, and what has to be known with it.

use std::fmt::Write;

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_run::printable;

use crate::answers::{columns, is_exact};
use crate::format;
use crate::notes::{Note, notes, warnings_apart, with};
use crate::row::{rows, table};
use crate::sentence::sentence;
use crate::series::{Series, tables};
use crate::table::{Column, Kind};
use crate::title::{question, reasons, subject};

/// GitHub's Markdown.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = format!("{}\n\n", in_markdown(&sentence(comparison)));
    let _ = writeln!(
        out,
        "**refit compare** {}",
        code(&subject(&comparison.experiment))
    );
    if let Some(question) = question(&comparison.experiment) {
        let _ = writeln!(out, "{}", escaped(&question));
    }
    if let Some(with) = with(&comparison.experiment) {
        let _ = writeln!(out, "{} {}", with.label, escaped(&with.text));
    }
    let (warnings, notes) = warnings_apart(notes(comparison));
    out.push_str(&warned(&warnings));
    if !is_exact(&comparison.experiment) {
        out.push('\n');
        out.push_str(&grid(
            &table(&comparison.experiment, &rows(comparison)).columns(),
        ));
    }
    let exact = columns(&comparison.experiment);
    if !exact.is_empty() {
        out.push('\n');
        out.push_str(&grid(&exact.iter().collect::<Vec<_>>()));
    }
    out.push('\n');
    for shown in tables(comparison) {
        out.push_str(&series(&shown));
    }
    for (name, why) in reasons(&comparison.experiment) {
        let _ = writeln!(out, "- {}: {}", code(&name), escaped(&why));
    }
    out.push_str(&noted(&notes));
    if let Some(machine) = machine(&comparison.experiment) {
        let _ = writeln!(out, "- **machine:** {}", escaped(&machine));
    }
    out.push_str(&origin(
        &comparison.experiment.refit,
        comparison.experiment.started_unix,
    ));
    out
}

/// A table of these columns.
pub fn grid(columns: &[&Column]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(
        columns
            .iter()
            .map(|column| escaped(&column.title))
            .collect(),
    );
    let rules = columns.iter().map(|column| match column.kind {
        Kind::Numbers => "--:|",
        _ => ":--|",
    });
    let _ = writeln!(out, "|{}", rules.collect::<String>());
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        let cells = columns.iter().map(|column| {
            let text = &column.cells[row].0;
            match column.kind {
                _ if text.is_empty() => String::new(),
                Kind::Code | Kind::Variant => code(text),
                Kind::Verdict => format!("**{}**", escaped(text)),
                // An interval keeps its brackets.
                Kind::Numbers => text.replace('|', r"\|"),
                Kind::Words | Kind::Prose => escaped(text),
            }
        });
        out.push_str(&line(cells.collect()));
    }
    out
}

/// A list of what has to be known.
pub fn noted(notes: &[Note]) -> String {
    let line = |note: &Note| match note.label.trim_end() {
        "" => format!("- {}\n", escaped(&note.text)),
        label => format!("- **{}** {}\n", escaped(label), escaped(&note.text)),
    };
    notes.iter().map(line).collect()
}

/// The same of what weakens the numbers below it.
pub fn warned(warnings: &[Note]) -> String {
    match noted(warnings) {
        list if list.is_empty() => list,
        list => format!("\n{list}"),
    }
}

/// Who made it, and when.
pub fn origin(refit: &str, started: u64) -> String {
    let refit = escaped(refit);
    format!("- refit {refit}, {} UTC\n", format::date(started))
}

/// Metrics side by side: below each value its effect.
fn series(series: &Series) -> String {
    let names = series.lines.iter().map(|(name, _)| name.clone());
    let metrics = series.metrics.iter().enumerate().map(|(i, metric)| {
        let cells = series
            .lines
            .iter()
            .map(|(_, cells)| match &*cells[i].effect {
                "" => cells[i].value.clone(),
                effect => format!("{}<br>{effect}", cells[i].value),
            });
        Column::numbers(metric, cells)
    });
    let columns: Vec<Column> = [Column::code(&series.title, names)]
        .into_iter()
        .chain(metrics)
        .collect();
    grid(&columns.iter().collect::<Vec<_>>()) + "\n"
}

/// Every number is one of a machine.
pub fn machine(experiment: &Experiment) -> Option<String> {
    let fixed = experiment.environment.fixed.iter();
    let parts: Vec<String> = fixed
        .map(|(name, value)| format!("{name} {}", format::fact(value)))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A sentence for Markdown: names between backticks stay code, and all other characters that are
/// markup in Markdown are escaped.
pub fn in_markdown(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate();
    let parts = parts.map(|(i, part)| match i % 2 {
        0 => escaped(part),
        _ => code(part),
    });
    parts.collect()
}

/// A code span, fenced by more backticks than it holds in a row.
pub fn code(text: &str) -> String {
    let text = printable(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    // In a table even the bar of a code span ends the cell.
    format!("{fence}{space}{}{space}{fence}", text.replace('|', r"\|"))
}

/// What Markdown would read as its own.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '<' | '>' | '|' | '[' | ']' | '#' | '@'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_table_with_all_that_belongs_to_it() {
        sample::golden("markdown.md", &markdown(&sample::experiment()));
    }

    #[test]
    fn a_service_with_its_question_and_its_reasons() {
        sample::golden("service.md", &markdown(&sample::service()));
    }

    #[test]
    fn no_name_breaks_the_table() {
        assert_eq!(code("env.A=x|y"), r"`env.A=x\|y`");
        assert_eq!(code("a``b"), "``` a``b ```");
        assert_eq!(escaped("wall<+2% *a_b*"), r"wall\<+2% \*a\_b\*");
        let mut comparison = sample::experiment();
        comparison.experiment.variants[1].name = "env.A=x|`\n| y".to_owned();
        let text = markdown(&comparison);
        let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(table.len(), 7);
        for line in table {
            let bars = line.replace(r"\|", "").matches('|').count();
            assert_eq!(bars, 9, "{line}");
        }
    }
}
