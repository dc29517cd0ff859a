//! The result of a comparison on a terminal.

use refit_lab::Comparison;

use crate::answers;
use crate::fold::fold;
use crate::notes::{classes, notes, warnings_apart, with};
use crate::paint::Style;
use crate::row::{rows, table};
use crate::sentence::sentence;
use crate::series;
use crate::title::title;

/// The answer, the table, and what has to be known with it; every line ends with a newline.
#[must_use]
pub fn terminal(comparison: &Comparison, style: &Style) -> String {
    beneath(&sentence(comparison), comparison, style)
}

/// The same beneath an answer that knows more than the comparison.
pub fn beneath(answer: &str, comparison: &Comparison, style: &Style) -> String {
    let mut lines = fold(answer, style.width);
    lines.extend(fold(&title(&comparison.experiment), style.width));
    lines.extend(
        with(&comparison.experiment)
            .iter()
            .flat_map(|note| note.lines(style)),
    );
    let (warnings, notes) = warnings_apart(notes(comparison));
    lines.extend(warnings.iter().flat_map(|note| note.lines(style)));
    let is_exact = answers::is_exact(&comparison.experiment);
    let mut names_class = false;
    if !is_exact {
        let table = table(&comparison.experiment, &rows(comparison)).terminal(style);
        lines.extend(table.lines);
        names_class = table.names_class;
    }
    lines.extend(answers::terminal(
        &comparison.experiment,
        style.width,
        style.colour,
    ));
    let classes = classes(comparison).filter(|_| !names_class);
    lines.extend(classes.iter().flat_map(|note| note.lines(style)));
    for series in series::tables(comparison) {
        lines.extend(side_by_side(&series).flat_map(|line| fold(&line, style.width)));
    }
    lines.extend(notes.iter().flat_map(|note| note.lines(style)));
    lines.push(String::new());
    lines.join("\n")
}

/// One line for each metric of a series, with every variant: as a table it would be broader than a terminal.
fn side_by_side(series: &series::Series) -> impl Iterator<Item = String> {
    series.metrics.iter().enumerate().map(|(i, metric)| {
        let variants = series.lines.iter().map(|(name, cells)| {
            let text = format!("{name} {} {}", cells[i].value, cells[i].effect);
            text.trim_end().to_owned()
        });
        let variants: Vec<String> = variants.collect();
        format!("{}, {metric}: {}", series.title, variants.join(" · "))
    })
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
        sample::golden("terminal-120.txt", &at(120));
    }

    #[test]
    fn at_80_columns_the_bar_and_the_syncs_are_gone() {
        sample::golden("terminal-80.txt", &at(80));
    }

    #[test]
    fn at_60_columns_each_name_has_a_line_of_its_own() {
        sample::golden("terminal-60.txt", &at(60));
    }

    #[test]
    fn a_service_is_told_of_in_operations_and_proportional_memory() {
        let style = Style {
            width: 120,
            colour: false,
        };
        sample::golden("service-120.txt", &terminal(&sample::service(), &style));
    }

    #[test]
    fn at_150_columns_there_is_room_for_everything() {
        let text = at(150);
        let head = text
            .lines()
            .find(|line| line.starts_with("variant"))
            .unwrap();
        for title in [
            "wall", "interval", "−60 %", "verdict", "max RSS", "syncs", "class",
        ] {
            assert!(head.contains(title), "{head}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_none_loses_its_verdict() {
        let mut comparison = sample::experiment();
        comparison.experiment.variants[2].name =
            "sync@exe:cleanup=off+malloc=jemalloc:dirty".to_owned();
        comparison.gates = sample::gates();
        comparison.confirmation = Some(Box::new(sample::confirmation()));
        for width in 60..=220 {
            for one in [&comparison, &sample::experiment()] {
                let text = terminal(
                    one,
                    &Style {
                        width,
                        colour: false,
                    },
                );
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                    assert_eq!(line, line.trim_end());
                }
                for variant in &one.experiment.variants[1..4] {
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
            "\u{1b}[32m2.4× faster\u{1b}[0m",
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
