//! Columns that line up.

use crate::paint::Tone;

/// Between two columns.
const GAP: &str = "  ";

/// A column: its title and one cell for each row.
pub struct Column {
    title: String,
    right: bool,
    cells: Vec<(String, Tone)>,
}

impl Column {
    /// Words: they begin at the same place.
    pub fn left(title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column::toned(title, cells.map(|cell| (cell, Tone::Plain)))
    }

    /// Numbers: they end at the same place.
    pub fn right(title: &str, cells: impl Iterator<Item = String>) -> Column {
        Column {
            right: true,
            ..Column::left(title, cells)
        }
    }

    /// Words with a tone each.
    pub fn toned(title: &str, cells: impl Iterator<Item = (String, Tone)>) -> Column {
        Column {
            title: title.to_owned(),
            right: false,
            cells: cells.collect(),
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

/// Characters that the columns take.
pub fn width(columns: &[&Column]) -> usize {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    columns.iter().map(|column| column.width()).sum::<usize>() + gaps
}

/// The line of titles.
pub fn head(columns: &[&Column], colour: bool) -> String {
    line(columns, colour, |column| (&column.title, Tone::Head))
}

/// A row's line.
pub fn row(columns: &[&Column], row: usize, colour: bool) -> String {
    line(columns, colour, |column| {
        let (text, tone) = &column.cells[row];
        (text, *tone)
    })
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
        let parts = if column.right {
            [padding, painted]
        } else {
            [painted, padding]
        };
        line.extend(parts);
    }
    line.trim_end().to_owned()
}
