//! A series as one picture: memory by part over time, and the sync waits under it.

use refit_run::series::Series;

use super::parts::{Part, Parts, time_ticks};
use crate::format;
use crate::html::chart::steps;
use crate::palette::COLOURS;
use crate::svg::{Anchor, Font, Svg};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = WIDTH - 24.0;
/// Upper and lower edge of the memory, and of the waits.
const MEMORY: [f64; 2] = [78.0, 378.0];
const WAITS: [f64; 2] = [436.0, 526.0];
const LEGEND: f64 = 580.0;
const LINE: f64 = 20.0;
/// Names in a line of the legend.
const NAMES: usize = 3;
const OTHERS: &str = "#b4b4b4";
const MIB: f64 = 1_048_576.0;

const TEXT: Font = Font {
    size: 13.0,
    fill: "#333",
    bold: false,
};
const SMALL: Font = Font {
    size: 12.0,
    fill: "#666",
    bold: false,
};

fn colour(part: &Part) -> &'static str {
    part.colour
        .map_or(OTHERS, |index| COLOURS[index % COLOURS.len()])
}

/// The picture.
#[must_use]
pub fn svg(series: &Series) -> String {
    let parts = Parts::of(series);
    let lines = parts.memory.len().div_ceil(NAMES);
    let mut svg = Svg::new(WIDTH, LEGEND + LINE * lines as f64);
    let title = super::title(series);
    svg.text(
        [24.0, 32.0],
        Anchor::Start,
        Font {
            size: 17.0,
            bold: true,
            ..TEXT
        },
        &format::shortened(&title, 84),
    );
    let x = |seconds: f64| LEFT + seconds / parts.span() * (RIGHT - LEFT);
    memory(&mut svg, &parts, &x);
    waits(&mut svg, series, &parts, &x);
    for (at, text) in time_ticks(parts.span()) {
        svg.line([x(at), WAITS[1]], [x(at), WAITS[1] + 5.0], "#999999", &[]);
        svg.text([x(at), WAITS[1] + 20.0], Anchor::Middle, SMALL, &text);
    }
    for (i, part) in parts.memory.iter().enumerate() {
        let left = LEFT + (i % NAMES) as f64 * (RIGHT - LEFT) / NAMES as f64;
        let y = LEGEND + LINE * (i / NAMES) as f64;
        svg.area([left, y - 10.0], [left + 11.0, y + 1.0], colour(part), &[]);
        svg.text(
            [left + 18.0, y],
            Anchor::Start,
            TEXT,
            &format::shortened(&part.name, 36),
        );
    }
    svg.finish(&title)
}

fn memory(svg: &mut Svg, parts: &Parts, x: &dyn Fn(f64) -> f64) {
    svg.text([LEFT, MEMORY[0] - 12.0], Anchor::Start, SMALL, &parts.title);
    let stack = parts.stacked();
    let most = stack
        .last()
        .and_then(|(_, above)| above.iter().copied().reduce(f64::max));
    let most = most.unwrap_or(0.0).max(1.0) * 1.05;
    let y = |bytes: f64| MEMORY[1] - bytes / most * (MEMORY[1] - MEMORY[0]);
    let unit = if most < MIB { 1024.0 } else { MIB };
    for bytes in steps(most, unit) {
        svg.line([LEFT, y(bytes)], [RIGHT, y(bytes)], "#e4e4e4", &[]);
        let text = if bytes > 0.0 {
            format::bytes(bytes)
        } else {
            "0".to_owned()
        };
        svg.text([LEFT - 8.0, y(bytes) + 4.0], Anchor::End, SMALL, &text);
    }
    for (part, (below, above)) in parts.memory.iter().zip(&stack) {
        for run in &parts.known {
            let at = |index: usize, bytes: &[f64]| [x(parts.seconds[index]), y(bytes[index])];
            let upper = run.clone().map(|index| at(index, above));
            let lower = run.clone().rev().map(|index| at(index, below));
            let corners: Vec<[f64; 2]> = upper.chain(lower).collect();
            svg.polygon(&corners, colour(part), &[("opacity", "0.85")]);
        }
    }
}

fn waits(svg: &mut Svg, series: &Series, parts: &Parts, x: &dyn Fn(f64) -> f64) {
    let y = |share: f64| WAITS[1] - share * (WAITS[1] - WAITS[0]);
    svg.text(
        [LEFT, WAITS[0] - 12.0],
        Anchor::Start,
        SMALL,
        &super::waits_title(series, parts),
    );
    for (share, text) in [(0.0, "0"), (0.5, "50 %"), (1.0, "100 %")] {
        svg.line([LEFT, y(share)], [RIGHT, y(share)], "#e4e4e4", &[]);
        svg.text([LEFT - 8.0, y(share) + 4.0], Anchor::End, SMALL, text);
    }
    for part in &parts.waits {
        let mut before = 0.0;
        let mut ends = Vec::new();
        for (seconds, share) in parts.seconds.iter().zip(&part.values) {
            ends.push([[x(before), y(*share)], [x(*seconds), y(*share)]]);
            before = *seconds;
        }
        let look = [("class", "waits"), ("stroke-width", "2")];
        svg.lines(colour(part), &look, &ends);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_picture_is_well_formed_whatever_the_series_holds() {
        let mut series = sample::machine();
        for at in 0..4 {
            let drawn = svg(&series);
            roxmltree::Document::parse(&drawn).unwrap();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{at}");
            match at {
                0 => series.samples.truncate(1),
                1 => series.samples.clear(),
                _ => series.groups.clear(),
            }
        }
    }

    #[test]
    fn memory_and_waits_have_their_colours_and_names() {
        let drawn = svg(&sample::machine());
        let document = roxmltree::Document::parse(&drawn).unwrap();
        let polygons = document
            .descendants()
            .filter(|node| node.has_tag_name("polygon"));
        assert_eq!(polygons.count(), 2);
        let mut series = sample::machine();
        series.samples[10].groups[0].memory = None;
        assert_eq!(svg(&series).matches("<polygon").count(), 4, "a gap in each");
        let mut classes = document
            .descendants()
            .filter_map(|node| node.attribute("class"));
        let look = classes
            .find_map(|classes| classes.strip_prefix("waits "))
            .unwrap();
        let rule = format!(".{look}{{stroke:{};", COLOURS[1]);
        assert!(drawn.contains(&rule), "{rule}: {drawn}");
        assert!(drawn.contains("postfix") && drawn.contains("app\\u{1b}[2J"));
    }
}
