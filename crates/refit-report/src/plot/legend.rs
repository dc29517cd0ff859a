//! Which colour is which variant, and what came of it.

use refit_lab::experiment::{Experiment, Role};

use super::frame::{GREY, LINE, MARGIN, SMALL, TEXT, colour};
use crate::format;
use crate::row::{Row, table};
use crate::svg::Svg;
use crate::svg::{Anchor, Font};
use crate::table::{Column, Content};

/// Characters of a variant's name.
const NAME: usize = 46;
/// Where a column stands; there is no room for other metrics.
fn place(column: &Column) -> Option<(Anchor, f64)> {
    Some(match column.content {
        Content::Name => (Anchor::Start, MARGIN + 20.0),
        Content::Value => (Anchor::End, 440.0),
        Content::Change => (Anchor::End, 540.0),
        Content::Interval => (Anchor::End, 694.0),
        Content::Verdict => (Anchor::Start, 712.0),
        Content::Class => (Anchor::Start, 822.0),
        Content::Side | Content::Other => return None,
    })
}

/// Below `y`: a line of titles, then one for each row.
pub fn draw(svg: &mut Svg, experiment: &Experiment, rows: &[Row], y: f64) {
    let table = table(experiment, rows);
    let columns = table.columns();
    let mut line = |y: f64, font: Font, of: &dyn Fn(&Column) -> String| {
        for column in &columns {
            let Some((anchor, x)) = place(column) else {
                continue;
            };
            let text = format::shortened(&of(column), NAME);
            svg.text([x, y], anchor, font, &text);
        }
    };
    line(y + LINE, SMALL, &|column| column.title.clone());
    let below = |i: usize| y + LINE * (i + 2) as f64;
    for (i, row) in rows.iter().enumerate() {
        let fill = match row.variant.role {
            Role::Hidden => GREY,
            _ => TEXT.fill,
        };
        let font = Font { fill, ..TEXT };
        line(below(i), font, &|column| column.cells[i].0.clone());
    }
    for (i, row) in rows.iter().enumerate() {
        let look = [("fill", colour(experiment, row.index))];
        svg.dot([MARGIN + 6.0, below(i) - 4.0], 5.0, &look);
    }
}
