//! For a pull request: a table, and what has to be known with it.

use std::fmt::Write;

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_stats::OVERALL_ALPHA;

use crate::answers::{is_exact, lines, note};
use crate::format;
use crate::notes::{notes, with};
use crate::row::{Row, main_metric, rows, side_titles};
use crate::series::{Table, tables};
use crate::title::{question, reasons, subject};

/// GitHub's Markdown.
#[must_use]
pub fn markdown(experiment: &Comparison) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "**refit compare** {}", code(&subject(experiment)));
    if let Some(question) = question(experiment) {
        let _ = writeln!(out, "{}", escaped(&question));
    }
    if let Some(with) = with(experiment) {
        let _ = writeln!(out, "{} {}", with.label, escaped(&with.text));
    }
    if !is_exact(experiment) {
        out.push_str(&verdicts(experiment));
    }
    out.push_str(&exact(experiment));
    out.push('\n');
    for table in tables(experiment) {
        out.push_str(&series(&table));
    }
    for (name, why) in reasons(experiment) {
        let _ = writeln!(out, "- {}: {}", code(&name), escaped(&why));
    }
    for note in notes(experiment) {
        let label = if note.label.is_empty() {
            String::new()
        } else {
            format!("**{}** ", escaped(note.label.trim_end()))
        };
        let _ = writeln!(out, "- {label}{}", escaped(&note.text));
    }
    if let Some(machine) = machine(experiment) {
        let _ = writeln!(out, "- **machine:** {}", escaped(&machine));
    }
    let _ = writeln!(
        out,
        "- refit {}, {} UTC",
        escaped(&format::printable(&experiment.refit)),
        format::date(experiment.started_unix)
    );
    out
}

fn verdicts(experiment: &Comparison) -> String {
    let mut out = String::new();
    let [side, syncs] = side_titles(experiment);
    let _ = writeln!(
        out,
        "\n| variant | {} | vs baseline | {} interval | verdict | {side} | {syncs} | class |",
        escaped(&main_metric(experiment)),
        format::magnitude(1.0 - OVERALL_ALPHA)
    );
    let _ = writeln!(out, "|:--|--:|--:|:-:|:--|--:|--:|:--|");
    for row in rows(experiment) {
        let _ = writeln!(out, "| {} |", cells(&row).join(" | "));
    }
    out
}

/// Nothing where nothing was asked.
fn exact(experiment: &Experiment) -> String {
    let lines = lines(experiment);
    if lines.is_empty() {
        return String::new();
    }
    let mut out = "\n| question | answer | given by |".to_owned();
    let then = note(experiment);
    let _ = match &then {
        Some(note) => writeln!(out, " then: {} |\n|:--|:--|:--|:--|", escaped(note)),
        None => writeln!(out, "\n|:--|:--|:--|"),
    };
    let mut before = "";
    for line in &lines {
        let question = if line.question == before {
            String::new()
        } else {
            escaped(&line.question)
        };
        before = &line.question;
        let _ = write!(
            out,
            "| {question} | {} | {} |",
            code(&line.answer),
            escaped(&line.variants)
        );
        let _ = match (&then, &line.then) {
            (None, _) => writeln!(out),
            (Some(_), None) => writeln!(out, " |"),
            (Some(_), Some(then)) => {
                let sign = if line.differs { "**≠**" } else { "=" };
                writeln!(out, " {sign} {} |", code(then))
            }
        };
    }
    out
}

/// Metrics side by side: below each value its effect.
fn series(table: &Table) -> String {
    let mut out = format!(
        "| {} | {} |\n|:--|{}\n",
        escaped(&table.title),
        table.metrics.join(" | "),
        "--:|".repeat(table.metrics.len())
    );
    for (name, cells) in &table.lines {
        let cells = cells.iter().map(|cell| match cell.effect.as_str() {
            "" => cell.value.clone(),
            effect => format!("{}<br>{effect}", cell.value),
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(out, "| {} | {} |", code(name), cells.join(" | "));
    }
    out.push('\n');
    out
}

fn cells(row: &Row) -> [String; 8] {
    let verdict = match row.verdict.as_str() {
        "" => String::new(),
        word => format!("**{}**", escaped(word)),
    };
    [
        code(&row.name),
        row.value.clone(),
        row.change.clone(),
        row.interval.clone(),
        verdict,
        row.sides[0].clone(),
        row.sides[1].clone(),
        escaped(&row.class),
    ]
}

/// Every number is one of a machine.
fn machine(experiment: &Experiment) -> Option<String> {
    let fixed = experiment.environment.fixed.iter();
    let parts: Vec<String> = fixed
        .map(|(name, value)| format::printable(&format!("{name} {value}")))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A code span, fenced by more backticks than it holds in a row.
pub fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    // In a table even the bar of a code span ends the cell.
    format!("{fence}{space}{}{space}{fence}", text.replace('|', r"\|"))
}

/// What Markdown would read as its own.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
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
        assert_eq!(
            markdown(&sample::experiment()),
            include_str!("../goldens/markdown.md")
        );
    }

    #[test]
    fn a_service_with_its_question_and_its_reasons() {
        assert_eq!(
            markdown(&sample::service()),
            include_str!("../goldens/service.md")
        );
    }

    #[test]
    fn no_name_breaks_the_table() {
        assert_eq!(code("env.A=x|y"), r"`env.A=x\|y`");
        assert_eq!(code("a``b"), "``` a``b ```");
        assert_eq!(escaped("wall<+2% *a_b*"), r"wall\<+2% \*a\_b\*");
        let mut experiment = sample::experiment();
        experiment.variants[1].name = "env.A=x|`\n| y".to_owned();
        let text = markdown(&experiment);
        let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(table.len(), 7);
        for line in table {
            let bars = line.replace(r"\|", "").matches('|').count();
            assert_eq!(bars, 9, "{line}");
        }
    }
}
