//! The picture of exact answers: they are words, and so it is a table.

use refit_lab::Comparison;

use super::{HEAD, LINE, MARGIN, SMALL, TEXT, WIDTH};
use crate::answers::{lines, note};
use crate::format;
use crate::notes::summary;
use crate::svg::{Anchor, Font, Svg};
use crate::title::{question, subject, title};

/// Where the columns begin: the answer, who gave it, what the note says.
const COLUMNS: [f64; 3] = [MARGIN + 18.0, 400.0, 700.0];
/// Characters that fit into each.
const ROOM: [usize; 3] = [56, 48, 38];

/// One sheet, as high as it has to be.
pub fn svg(comparison: &Comparison) -> String {
    let lines = lines(&comparison.experiment);
    let mut groups = lines.chunk_by(|a, b| a.question == b.question).peekable();
    let height = (LINE - 3.0) * lines.len() as f64 + (LINE + 3.0) * groups.clone().count() as f64;
    let note = note(&comparison.experiment);
    let mut svg = Svg::new(WIDTH, 150.0 + height);
    let mut y = 32.0;
    let mut line = |x: f64, y: f64, font: Font, text: &str, room: usize| {
        let text = format::shortened(text, room);
        svg.text([x, y], Anchor::Start, font, &text);
    };
    line(MARGIN, y, HEAD, &subject(&comparison.experiment), 84);
    if let Some(text) = question(&comparison.experiment) {
        y += LINE + 4.0;
        line(MARGIN, y, SMALL, &text, 150);
    }
    y += LINE;
    if groups.peek().is_none() {
        y += LINE;
        line(MARGIN, y, TEXT, "no answers", 100);
    }
    for group in groups {
        y += LINE + 3.0;
        let bold = Font { bold: true, ..TEXT };
        line(MARGIN, y, bold, &group[0].question, 120);
        for answer in group {
            y += LINE - 3.0;
            line(COLUMNS[0], y, TEXT, &answer.answer, ROOM[0]);
            line(COLUMNS[1], y, SMALL, &answer.variants, ROOM[1]);
            let Some(then) = &answer.then else { continue };
            let (sign, fill) = if answer.differs {
                ("≠", "#b34700")
            } else {
                ("=", SMALL.fill)
            };
            let font = Font { fill, ..SMALL };
            line(
                COLUMNS[2],
                y,
                font,
                &format!("{sign} then: {then}"),
                ROOM[2],
            );
        }
    }
    if let Some(note) = note {
        y += LINE + 8.0;
        line(MARGIN, y, SMALL, &format!("then: {note}"), 150);
    }
    y += LINE;
    let origin = format!(
        "{}; refit {}, {} UTC",
        summary(comparison),
        comparison.experiment.refit,
        format::date(comparison.experiment.started_unix)
    );
    line(MARGIN, y, SMALL, &origin, 150);
    svg.finish(&format!("refit compare: {}", title(&comparison.experiment)))
}
