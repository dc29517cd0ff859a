//! The forest plot as a file of its own, which follows the reader's light or dark screen: for each variant a line for
//! each machine, then the mean of all and where the next one will be.

use refit_lab::{Pool, measure};
use refit_stats::Measure;

use super::{Line, heading, lines, sentence, title};
use crate::bar::{Scale, changes, is_drawable};
use crate::fold::fold;
use crate::format;
use crate::format::shortened;
use crate::markup::Markup;
use crate::picture::{HEAD, MARGIN, WIDTH, at as at_px, lines as written, sheet, text};
use crate::plot::axis;

/// In pixels, as all that follows: where the field begins and ends; names stand to the left of it, numbers to the right.
const FIELD: [f64; 2] = [250.0, 650.0];
const LINE: f64 = 24.0;
const TEXT: f64 = 20.0;
/// Characters that fit into a line of the answer, and into a name.
const ANSWER: usize = 112;
const NAME: usize = 26;

const STYLE: &str = include_str!("forest.css");

/// The picture.
#[must_use]
pub fn svg(pool: &Pool) -> String {
    let title = title(pool);
    let head = fold(&title.replace('`', ""), HEAD);
    let answer = fold(&sentence(pool).replace('`', ""), ANSWER);
    let rows: Vec<Vec<Line>> = pool
        .variants
        .iter()
        .map(|variant| lines(pool, variant))
        .collect();
    let all = rows.iter().flatten();
    let scale = Scale::around(all.flat_map(|line| changes(&line.effect)), pool.delta);
    let headed = 10.0 + LINE * head.len() as f64;
    let answered = headed + LINE + TEXT * answer.len() as f64;
    let blocks = rows.iter().map(|rows| LINE * (rows.len() as f64 + 1.6));
    let bottom = answered + 10.0 + blocks.sum::<f64>();
    let height = bottom + 3.0 * TEXT;
    let about = format!("effect on each machine: {title}");
    sheet(&about, height, STYLE, |svg| {
        written(svg, "picture-head", 34.0, &head, LINE);
        written(svg, "picture-answer", headed + 26.0, &answer, TEXT);
        ticks(svg, &scale, [answered, bottom]);
        let mut y = answered + 10.0;
        for (index, (variant, rows)) in pool.variants.iter().zip(&rows).enumerate() {
            y += LINE;
            text(svg, "variant", "start", [MARGIN, y], &heading(variant));
            for (at, line) in rows.iter().enumerate() {
                y += LINE;
                let class = match at < variant.machines.len() {
                    true => format!("v{}", index % 8),
                    false => "base".to_owned(),
                };
                svg.element("g", &[("class", &class)], |group| {
                    row(group, &scale, line, y);
                });
            }
            y += 0.6 * LINE;
        }
        let better = match measure(pool.measure) {
            Measure::Rate => "higher is better",
            Measure::Duration | Measure::Amount => "lower is better",
        };
        let about = format!(
            "{} relative to the baseline, on a logarithmic scale; {better}",
            pool.main
        );
        text(svg, "", "start", [FIELD[0], bottom + 2.2 * TEXT], &about);
    })
}

fn row(svg: &mut Markup, scale: &Scale, line: &Line, y: f64) {
    let [left, right] = FIELD;
    let name = shortened(&line.name, NAME);
    text(svg, "name", "end", [left - 14.0, y], &name);
    let at = |change: f64| left + (right - left) * scale.part(change.ln_1p());
    let middle = y - 5.0;
    let is_drawable = is_drawable(&line.effect);
    if let Some([low, high]) = line.effect.interval.filter(|_| is_drawable) {
        let ends = [low, high].map(|change| at_px([at(change), middle]));
        svg.line("reach", ends[0], ends[1]);
    }
    // The next machine has a range and no estimate.
    if !line.change.is_empty() {
        if is_drawable {
            svg.circle("estimate", at_px([at(line.effect.change), middle]), "5.5");
        }
        text(svg, "number", "end", [right + 80.0, y], &line.change);
    }
    let interval = format::interval(line.effect.interval);
    text(svg, "", "end", [WIDTH - MARGIN, y], &interval);
}

fn ticks(svg: &mut Markup, scale: &Scale, [top, bottom]: [f64; 2]) {
    let at = |change: f64| FIELD[0] + (FIELD[1] - FIELD[0]) * scale.part(change.ln_1p());
    // Labels that would touch are left out; that of no effect is always there.
    let mut places = vec![(0.0, at(0.0))];
    for change in axis::ticks(scale) {
        let x = at(change);
        if places.iter().all(|(_, other)| (x - other).abs() > 46.0) {
            places.push((change, x));
        }
    }
    for (change, x) in places {
        let class = if axis::is_zero(change) {
            "zero"
        } else {
            "tick"
        };
        svg.line(class, at_px([x, top]), at_px([x, bottom]));
        text(svg, "", "middle", [x, bottom + TEXT], &axis::label(change));
    }
}
