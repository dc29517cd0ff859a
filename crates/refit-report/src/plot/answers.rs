//! The picture of exact answers: they are words, and so it is a table.

use refit_lab::Comparison;

use super::frame::{HEAD, LINE, MARGIN, SMALL, TEXT, WIDTH};
use crate::answers::{Line, lines, note};
use crate::format;
use crate::notes::summary;
use crate::svg::{Anchor, Font, Svg};
use crate::title::{question, subject};

/// Where the answers begin.
const LEFT: f64 = MARGIN + 18.0;
/// Between two columns.
const GAP: f64 = 16.0;
/// Breadth of a character for each pixel of its height: more than most letters take, and what digits take in the broadest
/// of the fonts.
const BREADTH: f64 = 0.64;

/// A column of the answers.
struct Column {
    x: f64,
    /// Characters that fit.
    room: usize,
}

/// The answer, who gave it, what the note says: each as broad as its longest text, and where that is too much for the
/// sheet, the broadest ones shorter.
fn columns(lines: &[Line]) -> [Column; 3] {
    let widest = |size: f64, text: &dyn Fn(&Line) -> String| {
        let lengths = lines.iter().map(|line| text(line).chars().count());
        lengths.max().unwrap_or(0) as f64 * size * BREADTH
    };
    let wanted = [
        widest(TEXT.size, &|line| line.answer.clone()),
        widest(SMALL.size, &|line| line.variants.clone()),
        widest(SMALL.size, &|line| line.note().unwrap_or_default()),
    ];
    let mut narrowest_first = [0, 1, 2];
    narrowest_first.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut left = WIDTH - MARGIN - LEFT - 2.0 * GAP;
    let mut breadths = wanted;
    for (done, column) in narrowest_first.into_iter().enumerate() {
        breadths[column] = wanted[column].min(left / (3 - done) as f64);
        left -= breadths[column];
    }
    let sizes = [TEXT.size, SMALL.size, SMALL.size];
    let mut x = LEFT;
    std::array::from_fn(|i| {
        let room = (breadths[i] / (sizes[i] * BREADTH)).round() as usize;
        let column = Column { x, room };
        x += breadths[i] + GAP;
        column
    })
}

/// One sheet, as high as it has to be.
pub fn svg(comparison: &Comparison) -> String {
    let lines = lines(&comparison.experiment);
    let [answers, variants, notes] = columns(&lines);
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
            line(answers.x, y, TEXT, &answer.answer, answers.room);
            line(variants.x, y, SMALL, &answer.variants, variants.room);
            let Some(note) = answer.note() else { continue };
            let fill = if answer.differs {
                "#b34700"
            } else {
                SMALL.fill
            };
            line(notes.x, y, Font { fill, ..SMALL }, &note, notes.room);
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
    svg.finish(&format!(
        "refit compare: {}",
        subject(&comparison.experiment)
    ))
}
