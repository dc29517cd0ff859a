//! Gain and risk as text: on a terminal, and in Markdown.

use refit_lab::Comparison;
use refit_run::printable;

use super::Proof;
use super::notes::notes;
use super::row::{Row, cuts, rows, table};
use super::sentence::sentence;
use crate::fold::fold;
use crate::markdown::{code, escaped, grid, in_markdown, noted, origin, warned};
use crate::notes::{classes, warnings_apart, with};
use crate::paint::{Style, Tone};
use crate::table::{INDENT, Table};
use crate::title::{subject, title};

/// The answer, the table, and what has to be known with it; every line ends with a newline.
pub fn terminal(comparison: &Comparison, proof: &Proof, style: &Style) -> String {
    let rows = rows(comparison, cuts(proof));
    let mut lines = fold(&sentence(comparison, proof, &rows), style.width);
    lines.extend(fold(&title(&comparison.experiment), style.width));
    lines.extend(
        with(&comparison.experiment)
            .iter()
            .flat_map(|note| note.lines(style)),
    );
    let (warnings, notes) = warnings_apart(notes(comparison, proof, &rows));
    lines.extend(warnings.iter().flat_map(|note| note.lines(style)));
    let table = table(comparison, &rows);
    let shown = table.terminal(style);
    let plain = Style {
        colour: false,
        ..*style
    };
    let fits = |lines: &[String]| lines.iter().all(|line| line.chars().count() <= style.width);
    if fits(&table.terminal(&plain).lines) {
        lines.extend(shown.lines);
        let classes = classes(comparison).filter(|_| !shown.names_class);
        lines.extend(classes.iter().flat_map(|note| note.lines(style)));
    } else {
        lines.extend(blocks(&table, &rows, style));
    }
    lines.extend(notes.iter().flat_map(|note| note.lines(style)));
    lines.push(String::new());
    lines.join("\n")
}

/// Some lines for each variant, for a terminal that is narrower than the table.
fn blocks(table: &Table, rows: &[Row], style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let name = match row.gain.class.as_str() {
            "" => row.gain.name.clone(),
            class => format!("{} ({class})", row.gain.name),
        };
        lines.extend(fold(&name, style.width));
        let (verdict, tone) = &table.verdict.cells[at];
        let indented = |text: &str, tone: Tone| -> Vec<String> {
            let folded = fold(text, style.width.saturating_sub(INDENT.len()));
            let painted = folded.iter().map(|line| tone.paint(line, style.colour));
            painted.map(|line| format!("{INDENT}{line}")).collect()
        };
        lines.extend(indented(verdict, *tone));
        let columns = table
            .numbers
            .iter()
            .chain(&table.extras[..table.extras.len() - 1]);
        let cells = columns.filter_map(|column| {
            let text = &column.cells[at].0;
            let has_value = !["", "–"].contains(&&**text);
            has_value.then(|| format!("{} {text}", column.title))
        });
        let cells: Vec<String> = cells.collect();
        lines.extend(indented(&cells.join("; "), Tone::Plain));
    }
    lines
}

/// GitHub's Markdown.
pub fn markdown(comparison: &Comparison, proof: &Proof) -> String {
    let rows = rows(comparison, cuts(proof));
    let answer = sentence(comparison, proof, &rows);
    let (warnings, notes) = warnings_apart(notes(comparison, proof, &rows));
    let with = with(&comparison.experiment)
        .map(|with| format!("{} {}\n", with.label, escaped(&with.text)));
    [
        format!("{}\n\n", in_markdown(&answer)),
        format!(
            "**refit compare** {} \\-\\-prove\n",
            code(&subject(&comparison.experiment))
        ),
        with.unwrap_or_default(),
        warned(&warnings),
        "\n".to_owned(),
        grid(&table(comparison, &rows).columns()),
        "\n".to_owned(),
        noted(&notes),
        machine(comparison),
        origin(
            &printable(&comparison.experiment.refit),
            comparison.experiment.started_unix,
        ),
    ]
    .concat()
}

fn machine(comparison: &Comparison) -> String {
    let machine = crate::markdown::machine(&comparison.experiment);
    machine.map_or(String::new(), |machine| {
        format!("- **machine:** {}\n", escaped(&machine))
    })
}
