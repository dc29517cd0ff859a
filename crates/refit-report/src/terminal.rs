//! The result of a comparison on a terminal.
//!
//! A line of the table is never wider than the terminal. Where there is less
//! room, columns go from the right; the class moves beneath the table, since it
//! is always said. What is never dropped: the effect, its interval, its verdict.

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_stats::OVERALL_ALPHA;

use crate::answers;
use crate::bar::{self, Scale, bar, changes};
use crate::fold::fold;
use crate::format;
use crate::notes::{Note, classes, notes, with};
use crate::paint::Tone;
use crate::row::{Row, main_metric, rows, side_titles};
use crate::series;
use crate::table::{Column, head, row, width};
use crate::title::title;

/// What the terminal can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Its columns.
    pub width: usize,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// A bar narrower than this says nothing, a wider one nothing more.
const BAR: std::ops::RangeInclusive<usize> = 17..=41;
/// Of the lines below a variant's name, where the name has one of its own.
pub const INDENT: &str = "  ";

/// The table, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(experiment: &Comparison, style: &Style) -> String {
    let mut lines = fold(&title(experiment), style.width);
    lines.extend(with(experiment).iter().flat_map(|note| folded(note, style)));
    let rows = rows(experiment);
    let table = Table::new(experiment, &rows);
    let layout = table.layout(style.width);
    let is_exact = answers::is_exact(experiment);
    if !is_exact {
        lines.extend(table.lines(&layout, &rows, style.colour));
    }
    lines.extend(answers::terminal(experiment, style.width, style.colour));
    if is_exact || !layout.names_class {
        lines.extend(
            classes(experiment)
                .iter()
                .flat_map(|note| folded(note, style)),
        );
    }
    for series in series::tables(experiment) {
        lines.extend(side_by_side(&series).flat_map(|line| fold(&line, style.width)));
    }
    lines.extend(
        notes(experiment)
            .iter()
            .flat_map(|note| folded(note, style)),
    );
    lines.push(String::new());
    lines.join("\n")
}

/// One line for each metric of a series, with every variant: as a table it would be broader than a terminal.
fn side_by_side(series: &series::Table) -> impl Iterator<Item = String> {
    series.metrics.iter().enumerate().map(|(i, metric)| {
        let variants = series.lines.iter().map(|(name, cells)| {
            let text = format!("{name} {} {}", cells[i].value, cells[i].effect);
            text.trim_end().to_owned()
        });
        let variants: Vec<String> = variants.collect();
        format!("{}, {metric}: {}", series.title, variants.join(" · "))
    })
}

/// A note in lines that fit, its label painted.
pub fn folded(note: &Note, style: &Style) -> Vec<String> {
    if note.label.is_empty() {
        return fold(&note.text, style.width);
    }
    let mut lines = fold(&format!("{} {}", note.label, note.text), style.width);
    if let Some(rest) = lines[0].strip_prefix(&note.label) {
        lines[0] = note.tone.paint(&note.label, style.colour) + rest;
    }
    lines
}

/// All that could be shown of each variant.
struct Table {
    name: Column,
    /// The main metric, its effect and interval.
    numbers: [Column; 3],
    verdict: Column,
    /// The side metrics.
    sides: [Column; 2],
    class: Column,
    scale: Scale,
}

/// What is shown.
struct Layout {
    /// The name has a line of its own, and the class stands there.
    stacked: bool,
    /// A column or the name's line says the class.
    names_class: bool,
    bar: Option<usize>,
    /// Of the side metrics and the class.
    extras: usize,
}

impl Table {
    fn new(experiment: &Experiment, rows: &[Row]) -> Table {
        let cells =
            |of: for<'a> fn(&'a Row) -> &'a str| rows.iter().map(move |row| of(row).to_owned());
        let [side, syncs] = side_titles(experiment);
        let level = format!("{} interval", format::magnitude(1.0 - OVERALL_ALPHA));
        let effects = rows.iter().filter_map(|row| row.effect);
        Table {
            name: Column::left("variant", cells(|row| &row.name)),
            numbers: [
                Column::right(&main_metric(experiment), cells(|row| &row.value)),
                Column::right("vs baseline", cells(|row| &row.change)),
                Column::right(&level, cells(|row| &row.interval)),
            ],
            verdict: Column::toned(
                "verdict",
                rows.iter().map(|row| (row.verdict.clone(), row.tone)),
            ),
            sides: [
                Column::right(side, cells(|row| &row.sides[0])),
                Column::left(syncs, cells(|row| &row.sides[1])),
            ],
            class: Column::left("class", cells(|row| &row.class)),
            scale: Scale::around(effects.flat_map(changes), experiment.delta),
        }
    }

    /// The columns of a layout, without the bar's if `bar` is none.
    fn columns<'a>(
        &'a self,
        stacked: bool,
        extras: usize,
        bar: Option<&'a Column>,
    ) -> Vec<&'a Column> {
        let mut columns = if stacked {
            Vec::new()
        } else {
            vec![&self.name]
        };
        columns.extend(&self.numbers);
        columns.extend(bar);
        columns.push(&self.verdict);
        let extra = self.sides.iter().chain([&self.class]);
        columns.extend(extra.take(extras));
        columns
    }

    /// The richest layout that fits; the poorest where none does.
    fn layout(&self, room: usize) -> Layout {
        const FLAT: [(usize, bool); 6] = [
            (3, true),
            (2, true),
            (3, false),
            (2, false),
            (1, false),
            (0, false),
        ];
        const STACKED: [(usize, bool); 4] = [(2, true), (2, false), (1, false), (0, false)];
        let flat = FLAT.into_iter().map(|(extras, bar)| (false, extras, bar));
        let stacked = STACKED.into_iter().map(|(extras, bar)| (true, extras, bar));
        for (stacked, extras, has_bar) in flat.chain(stacked) {
            let indent = if stacked { INDENT.len() } else { 0 };
            let Some(left) = room.checked_sub(indent + width(&self.columns(stacked, extras, None)))
            else {
                continue;
            };
            // Two for the gap before it.
            let bar = left.saturating_sub(2).min(*BAR.end());
            if !has_bar || BAR.contains(&bar) {
                let bar = has_bar.then_some(bar);
                let names_class = stacked || extras == 3;
                return Layout {
                    stacked,
                    names_class,
                    bar,
                    extras,
                };
            }
        }
        Layout {
            stacked: true,
            names_class: true,
            bar: None,
            extras: 0,
        }
    }

    fn lines(&self, layout: &Layout, rows: &[Row], colour: bool) -> Vec<String> {
        let bar = layout.bar.map(|width| {
            // Of full width, so that the next column stands still.
            let cells = rows.iter().map(|row| bar(row.effect, &self.scale, width));
            Column::left(&format!("{:width$}", bar::title(&self.scale, width)), cells)
        });
        let columns = self.columns(layout.stacked, layout.extras, bar.as_ref());
        let mut lines = Vec::new();
        if !layout.stacked {
            lines.push(head(&columns, colour));
            lines.extend((0..rows.len()).map(|i| row(&columns, i, colour)));
            return lines;
        }
        lines.push(Tone::Head.paint("variant", colour));
        lines.push(format!("{INDENT}{}", head(&columns, colour)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn at(width: usize) -> String {
        terminal(
            &sample::experiment(),
            &Style {
                width,
                colour: false,
            },
        )
    }

    #[test]
    fn at_120_columns_the_class_stands_beneath() {
        assert_eq!(at(120), include_str!("../goldens/terminal-120.txt"));
    }

    #[test]
    fn at_80_columns_the_bar_and_the_syncs_are_gone() {
        assert_eq!(at(80), include_str!("../goldens/terminal-80.txt"));
    }

    #[test]
    fn at_60_columns_each_name_has_a_line_of_its_own() {
        assert_eq!(at(60), include_str!("../goldens/terminal-60.txt"));
    }

    #[test]
    fn a_service_is_told_of_in_operations_and_proportional_memory() {
        let style = Style {
            width: 120,
            colour: false,
        };
        assert_eq!(
            terminal(&sample::service(), &style),
            include_str!("../goldens/service-120.txt")
        );
    }

    #[test]
    fn at_150_columns_there_is_room_for_everything() {
        let text = at(150);
        let head = text.lines().nth(2).unwrap();
        for title in [
            "wall", "interval", "−60 %", "verdict", "max RSS", "syncs", "class",
        ] {
            assert!(head.contains(title), "{head}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_none_loses_its_verdict() {
        let mut experiment = sample::experiment();
        experiment.variants[2].name = "sync@exe:cleanup=off+malloc=jemalloc:dirty".to_owned();
        experiment.gates = sample::gates();
        experiment.confirmation = Some(Box::new(sample::confirmation()));
        for width in 60..=220 {
            for experiment in [&experiment, &sample::experiment()] {
                let text = terminal(
                    experiment,
                    &Style {
                        width,
                        colour: false,
                    },
                );
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                    assert_eq!(line, line.trim_end());
                }
                for variant in &experiment.variants[1..4] {
                    assert!(text.contains(&variant.name), "{width}: {text}");
                }
                for words in [
                    "[−59.9 %, −57.2 %]",
                    "faster",
                    "same (±1 %)",
                    "inconclusive",
                    "loses-on-crash",
                ] {
                    assert!(text.contains(words), "{width}: {text}");
                }
            }
        }
    }

    #[test]
    fn colours_change_nothing_else() {
        let style = Style {
            width: 120,
            colour: true,
        };
        let painted = terminal(&sample::experiment(), &style);
        for part in [
            "\u{1b}[32mfaster\u{1b}[0m",
            "\u{1b}[33minconclusive\u{1b}[0m",
            "\u{1b}[33mwarning:\u{1b}[0m the",
        ] {
            assert!(painted.contains(part), "{part:?} is not in\n{painted}");
        }
        let plain = ["1", "31", "32", "33", "0"]
            .iter()
            .fold(painted, |text, code| {
                text.replace(&format!("\u{1b}[{code}m"), "")
            });
        assert_eq!(plain, at(120));
        assert!(!plain.contains('\u{1b}'));
    }
}
