//! A crash report on a terminal.
//!
//! As with a comparison, no line of the table is wider than the terminal:
//! columns go from the right, and what they said stands beneath. What is never
//! dropped: the worst loss, its age, the verdict.

use refit_crash::CrashReport;

use super::notes::notes;
use super::row::{Row, rows};
use crate::fold::fold;
use crate::format;
use crate::notes::{Note, note};
use crate::paint::Tone;
use crate::table::{Column, head, row, width};
use crate::terminal::{INDENT, Style, folded};

/// The table, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(report: &CrashReport, style: &Style) -> String {
    let rows = rows(report);
    let table = Table::new(&rows);
    let layout = table.layout(style.width);
    let mut lines = fold(&format::command_line(&report.command), style.width);
    lines.extend(table.lines(&layout, &rows, style.colour));
    if !layout.names_class(&table) {
        lines.extend(classes(&rows).iter().flat_map(|note| folded(note, style)));
    }
    for note in notes(report, &rows) {
        lines.extend(folded(&note, style));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn classes(rows: &[Row]) -> Option<Note> {
    let named = rows.iter().filter(|row| !row.class.is_empty());
    let said: Vec<String> = named
        .map(|row| format!("{} {}", row.name, row.class))
        .collect();
    (!said.is_empty()).then(|| note("class:", Tone::Plain, said.join("; ")))
}

/// All that could be shown of each mode.
struct Table {
    name: Column,
    /// What is never dropped.
    core: [Column; 3],
    /// From the most to the least important.
    extras: [Column; 5],
}

/// What is shown.
struct Layout {
    /// The name has a line of its own, and the class stands there.
    stacked: bool,
    extras: usize,
}

impl Layout {
    fn names_class(&self, table: &Table) -> bool {
        self.stacked || self.extras == table.extras.len()
    }
}

impl Table {
    fn new(rows: &[Row]) -> Table {
        let cells =
            |of: for<'a> fn(&'a Row) -> &'a str| rows.iter().map(move |row| of(row).to_owned());
        let verdicts = rows.iter().map(|row| (row.verdict.clone(), row.tone));
        Table {
            name: Column::left("mode", cells(|row| &row.name)),
            core: [
                Column::right("worst loss", cells(|row| &row.worst)),
                Column::right("oldest", cells(|row| &row.oldest)),
                Column::toned("verdict", verdicts),
            ],
            extras: [
                Column::right("bad images", cells(|row| &row.images)),
                Column::left("how", cells(|row| &row.how)),
                Column::right("cuts", cells(|row| &row.cuts)),
                Column::right("acked", cells(|row| &row.acknowledged)),
                Column::left("class", cells(|row| &row.class)),
            ],
        }
    }

    fn columns(&self, layout: &Layout) -> Vec<&Column> {
        let name = (!layout.stacked).then_some(&self.name);
        let extras = self.extras.iter().take(layout.extras);
        name.into_iter().chain(&self.core).chain(extras).collect()
    }

    /// The richest layout that fits; the poorest where none does.
    fn layout(&self, room: usize) -> Layout {
        let all = [false, true].into_iter().flat_map(|stacked| {
            let counts = (0..=self.extras.len()).rev();
            counts.map(move |extras| Layout { stacked, extras })
        });
        let mut fitting = all.filter(|layout| {
            let indent = if layout.stacked { INDENT.len() } else { 0 };
            indent + width(&self.columns(layout)) <= room
        });
        fitting.next().unwrap_or(Layout {
            stacked: true,
            extras: 0,
        })
    }

    fn lines(&self, layout: &Layout, rows: &[Row], colour: bool) -> Vec<String> {
        let columns = self.columns(layout);
        if !layout.stacked {
            let rows = (0..rows.len()).map(|i| row(&columns, i, colour));
            return [head(&columns, colour)].into_iter().chain(rows).collect();
        }
        let mut lines = vec![
            Tone::Head.paint("mode", colour),
            format!("{INDENT}{}", head(&columns, colour)),
        ];
        for (i, shown) in rows.iter().enumerate() {
            lines.push(match shown.class.as_str() {
                "" => shown.name.clone(),
                class => format!("{} ({class})", shown.name),
            });
            lines.push(format!("{INDENT}{}", row(&columns, i, colour)));
        }
        lines
    }
}
