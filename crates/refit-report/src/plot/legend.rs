//! Which colour is which variant, and what came of it.

use refit_lab::Comparison;
use refit_lab::experiment::{Experiment, Role};
use refit_stats::OVERALL_ALPHA;

use super::{Anchor, Font, GREY, LINE, MARGIN, SMALL, TEXT, colour};
use crate::format;
use crate::row::{main_metric, rows};
use crate::svg::Svg;

/// Of the variant's name.
const NAME: usize = 46;
/// Where the columns stand: ends of numbers, beginnings of words.
const NUMBERS: [f64; 3] = [440.0, 540.0, 694.0];
const WORDS: [f64; 2] = [712.0, 822.0];

/// A variant, in words.
pub struct Line {
    variant: usize,
    name: String,
    numbers: [String; 3],
    words: [String; 2],
}

/// One line for each variant, the hidden baseline last.
pub fn lines(experiment: &Comparison) -> Vec<Line> {
    let shown = rows(experiment).into_iter().map(|row| Line {
        variant: row.index,
        name: match row.variant.role {
            Role::Bare => format!("{}: the program without refit", row.name),
            _ => row.name,
        },
        numbers: [row.value, row.change, row.interval],
        words: [row.verdict, row.class],
    });
    let hidden = experiment
        .variants
        .iter()
        .position(|variant| variant.role == Role::Hidden);
    let hidden = hidden.map(|variant| {
        let effect = experiment.effects.get(variant, &experiment.main);
        Line {
            variant,
            name: "a second baseline: today's noise".to_owned(),
            numbers: [
                String::new(),
                effect.map_or(String::new(), |effect| format::percent(effect.change)),
                effect.map_or(String::new(), |effect| format::interval(effect.interval)),
            ],
            words: Default::default(),
        }
    });
    shown.chain(hidden).collect()
}

/// Below `y`: a line of titles, then the lines.
pub fn draw(svg: &mut Svg, experiment: &Experiment, lines: &[Line], y: f64) {
    let interval = format!("{} interval", format::magnitude(1.0 - OVERALL_ALPHA));
    let titles = Line {
        variant: 0,
        name: "variant".to_owned(),
        numbers: [main_metric(experiment), "vs baseline".to_owned(), interval],
        words: ["verdict".to_owned(), "class".to_owned()],
    };
    write(svg, &titles, y + LINE, SMALL);
    for (i, line) in lines.iter().enumerate() {
        let y = y + LINE * (i + 2) as f64;
        svg.dot(
            [MARGIN + 6.0, y - 4.0],
            5.0,
            &[("fill", colour(experiment, line.variant))],
        );
        let is_hidden = experiment.variants[line.variant].role == Role::Hidden;
        let font = if is_hidden {
            Font { fill: GREY, ..TEXT }
        } else {
            TEXT
        };
        write(svg, line, y, font);
    }
}

fn write(svg: &mut Svg, line: &Line, y: f64, font: Font) {
    svg.text(
        [MARGIN + 20.0, y],
        Anchor::Start,
        font,
        &format::shortened(&line.name, NAME),
    );
    for (text, x) in line.numbers.iter().zip(NUMBERS) {
        svg.text([x, y], Anchor::End, font, text);
    }
    for (text, x) in line.words.iter().zip(WORDS) {
        svg.text([x, y], Anchor::Start, font, text);
    }
}
