//! One table for every format: its columns are defined once.

use refit_run::printable;

use crate::bar::Bars;
use crate::paint::{Style, Tone};

/// Between two columns.
pub const GAP: &str = "  ";
/// Of the lines below a row's name, where the name has one of its own.
pub const INDENT: &str = "  ";
/// A narrower bar shows nothing, a wider one nothing more.
const BAR: std::ops::RangeInclusive<usize> = 17..=41;

/// How a column's cells are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A few words: they begin at the same place.
    Words,
    /// Sentences, which may be folded.
    Prose,
    /// Numbers: they end at the same place.
    Numbers,
    /// What can be typed.
    Code,
    /// What can be typed, with the colour of its variant where there are colours.
    Variant,
    /// What the row comes to, by its tone.
    Verdict,
}

/// What a column of a comparison's table holds: pages and pictures set each of them in its own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// The name of a variant.
    Name,
    /// The main metric.
    Value,
    /// Its change relative to the baseline.
    Change,
    /// The interval of that.
    Interval,
    /// What it comes to.
    Verdict,
    /// Another metric.
    Side,
    /// What the setting risks.
    Class,
    /// Anything else.
    #[default]
    Other,
}

/// Texts below a cell, each with its class on a page.
pub type Lines = Vec<(String, &'static str)>;

/// A column: its title and one cell for each row, printable.
pub struct Column {
    /// Above it.
    pub title: String,
    /// Its cells are all of one kind.
    pub kind: Kind,
    /// What it holds.
    pub content: Content,
    /// Of each row.
    pub cells: Vec<(String, Tone)>,
    /// What a page shows below each cell, where there is anything.
    pub below: Vec<Lines>,
    /// The class of its title on a page, where the column has a colour.
    pub class: String,
}

impl Column {
    /// Words.
    pub fn words(title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column::of(Kind::Words, title, cells)
    }

    /// Sentences.
    pub fn prose(title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column::of(Kind::Prose, title, cells)
    }

    /// Numbers with their units.
    pub fn numbers(title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column::of(Kind::Numbers, title, cells)
    }

    /// Names and commands.
    pub fn code(title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column::of(Kind::Code, title, cells)
    }

    /// Verdicts with a tone each.
    pub fn verdicts(title: &str, cells: impl Iterator<Item = (String, Tone)>) -> Column {
        let (texts, tones): (Vec<String>, Vec<Tone>) = cells.unzip();
        let mut column = Column::of(Kind::Verdict, title, texts.into_iter());
        for (cell, tone) in column.cells.iter_mut().zip(tones) {
            cell.1 = tone;
        }
        column
    }

    /// Holds this.
    pub fn with(self, content: Content) -> Column {
        Column { content, ..self }
    }

    /// With this below its cells.
    pub fn over(self, below: Vec<Lines>) -> Column {
        Column { below, ..self }
    }

    /// Of any kind.
    pub fn of(kind: Kind, title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column {
            title: printable(title),
            kind,
            content: Content::Other,
            cells: cells.map(|cell| (printable(&cell), Tone::Plain)).collect(),
            below: Vec::new(),
            class: String::new(),
        }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|(text, _)| text);
        cells
            .chain([&self.title])
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
    }
}

/// A table whose rows are variants.
///
/// On a terminal no line of it is wider than the terminal. Where there is less
/// room, columns go from the right; the class, which is the last of them, is
/// shown elsewhere then. What is never dropped: the name, the numbers, the verdict.
pub struct Table<'a> {
    /// Of each row.
    pub name: Column,
    /// What the verdict is about.
    pub numbers: Vec<Column>,
    /// The numbers as a picture.
    pub bars: Option<Bars<'a>>,
    /// What they come to.
    pub verdict: Column,
    /// From the most to the least important; the class is the last.
    pub extras: Vec<Column>,
}

/// A table on a terminal.
pub struct Shown {
    /// Its lines.
    pub lines: Vec<String>,
    /// Whether they have the class of each row.
    pub names_class: bool,
}

/// What is shown.
struct Layout {
    /// The name has a line of its own, and the class stands there.
    stacked: bool,
    bar: Option<usize>,
    extras: usize,
}

impl Table<'_> {
    /// All columns in their order.
    pub fn columns(&self) -> Vec<&Column> {
        self.some(false, None, self.extras.len())
    }

    fn some<'b>(
        &'b self,
        stacked: bool,
        bar: Option<&'b Column>,
        extras: usize,
    ) -> Vec<&'b Column> {
        let name = (!stacked).then_some(&self.name);
        let numbers = name.into_iter().chain(&self.numbers).chain(bar);
        let extras = self.extras.iter().take(extras);
        numbers.chain([&self.verdict]).chain(extras).collect()
    }

    /// For a terminal: the richest layout that fits; the poorest where none does.
    pub fn terminal(&self, style: &Style) -> Shown {
        let layout = self.layout(style.width);
        let bar = layout.bar.zip(self.bars.as_ref());
        let bar = bar.map(|(width, bars)| {
            // Of full width, so that the next column stands still.
            let title = format!("{:width$}", bars.title(width));
            Column::words(&title, bars.lines(width).into_iter())
        });
        let columns = self.some(layout.stacked, bar.as_ref(), layout.extras);
        Shown {
            lines: if layout.stacked {
                self.stacked(&columns, style.colour)
            } else {
                lines(&columns, style.colour)
            },
            names_class: layout.stacked || layout.extras == self.extras.len(),
        }
    }

    fn layout(&self, room: usize) -> Layout {
        for stacked in [false, true] {
            // The name's line has the class.
            let most = self.extras.len() - usize::from(stacked);
            // A bar is worth one column, and no more.
            let bars = match (&self.bars, stacked) {
                (None, _) => 0,
                (Some(_), true) => 1,
                (Some(_), false) => 2,
            };
            let with_bar = (0..=most).rev().take(bars).map(|extras| (extras, true));
            let without = (0..=most).rev().map(|extras| (extras, false));
            for (extras, has_bar) in with_bar.chain(without) {
                let columns = self.some(stacked, None, extras);
                let indent = if stacked { INDENT.len() } else { 0 };
                let Some(left) = room.checked_sub(indent + width(&columns)) else {
                    continue;
                };
                let bar = left.saturating_sub(GAP.len()).min(*BAR.end());
                if !has_bar || BAR.contains(&bar) {
                    let bar = has_bar.then_some(bar);
                    return Layout {
                        stacked,
                        bar,
                        extras,
                    };
                }
            }
        }
        Layout {
            stacked: true,
            bar: None,
            extras: 0,
        }
    }

    fn stacked(&self, columns: &[&Column], colour: bool) -> Vec<String> {
        let mut out = vec![Tone::Head.paint(&self.name.title, colour)];
        let classes = self.extras.last().map(|column| &column.cells);
        for (i, line) in lines(columns, colour).into_iter().enumerate() {
            if let Some(row) = i.checked_sub(1) {
                let name = &self.name.cells[row].0;
                out.push(match classes.map(|cells| cells[row].0.as_str()) {
                    None | Some("") => name.clone(),
                    Some(class) => format!("{name} ({class})"),
                });
            }
            out.push(format!("{INDENT}{line}"));
        }
        out
    }
}

/// Characters that the columns take.
pub fn width(columns: &[&Column]) -> usize {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    columns.iter().map(|column| column.width()).sum::<usize>() + gaps
}

/// Columns that line up: their titles, then the rows.
pub fn lines(columns: &[&Column], colour: bool) -> Vec<String> {
    let head = line(columns, colour, |column| (&column.title, Tone::Head));
    [head].into_iter().chain(rows(columns, colour)).collect()
}

/// The rows alone.
pub fn rows(columns: &[&Column], colour: bool) -> Vec<String> {
    let count = columns.first().map_or(0, |column| column.cells.len());
    let row = |i: usize| {
        line(columns, colour, |column| {
            let (text, tone) = &column.cells[i];
            (text, *tone)
        })
    };
    (0..count).map(row).collect()
}

fn line<'a>(
    columns: &[&'a Column],
    colour: bool,
    of: impl Fn(&'a Column) -> (&'a String, Tone),
) -> String {
    let mut line = String::new();
    for (i, column) in columns.iter().enumerate() {
        if i > 0 {
            line.push_str(GAP);
        }
        let (text, tone) = of(column);
        let padding = " ".repeat(column.width() - text.chars().count());
        // Padding is outside of the colour, so that the end can be trimmed.
        let painted = tone.paint(text, colour);
        let parts = match column.kind {
            Kind::Numbers => [padding, painted],
            _ => [painted, padding],
        };
        line.extend(parts);
    }
    line.trim_end().to_owned()
}
