//! The strip plot: every run in the order in which it was made, as a ratio to
//! the baseline's median; drift, outliers and two levels are to be seen at once.

mod answers;
pub mod axis;
mod curve;
pub mod frame;
mod legend;
mod runs;
pub mod strip;

use refit_lab::Comparison;
use refit_lab::experiment::Experiment;
use refit_stats::OVERALL_ALPHA;

use crate::answers::is_exact;
use crate::fold::fold;
use crate::format;
use crate::notes::{summary, with};
use crate::row::{is_service, keeps_service, with_noise};
use crate::svg::{Anchor, Svg};
use crate::title::{question, subject};
use frame::{Frame, HEAD, LINE, MARGIN, SMALL, TEXT, WIDTH};

const HEIGHT_OF_RUNS: f64 = 340.0;
/// Characters of the caveat that fit on one line.
const CAVEAT: usize = 150;

/// In place of the runs, where there is nothing to compare with.
pub const NO_BASELINE: &str = "no run of the baseline counts yet";

/// The picture. Without a counted run of the baseline there is nothing to
/// compare with, and it says so.
#[must_use]
pub fn svg(comparison: &Comparison) -> String {
    if is_exact(&comparison.experiment) {
        return answers::svg(comparison);
    }
    let subtitles = subtitles(&comparison.experiment);
    let caveat = caveat(comparison);
    let rows = with_noise(comparison);
    let top = 44.0 + LINE * (subtitles.len() + rows.len() + 1) as f64 + 44.0;
    let bottom = top + HEIGHT_OF_RUNS;
    let below = curve::drawn(&comparison.experiment).count() as f64 * curve::HEIGHT;
    let height = bottom + below + 48.0 + LINE * caveat.len() as f64;
    let mut svg = Svg::new(WIDTH, height);
    svg.text(
        [MARGIN, 32.0],
        Anchor::Start,
        HEAD,
        &format::shortened(&subject(&comparison.experiment), 84),
    );
    let mut y = 44.0;
    for line in &subtitles {
        y += LINE;
        svg.text(
            [MARGIN, y - 4.0],
            Anchor::Start,
            SMALL,
            &format::shortened(line, CAVEAT),
        );
    }
    legend::draw(&mut svg, &comparison.experiment, &rows, y);
    let right = WIDTH - MARGIN - runs::panel_width(comparison);
    match Frame::new(comparison, [top, bottom], right) {
        Some(frame) => {
            runs::draw(&mut svg, &comparison.experiment, &frame);
            runs::intervals(&mut svg, comparison, &frame);
        }
        None => {
            let middle = [WIDTH / 2.0, f64::midpoint(top, bottom)];
            svg.text(middle, Anchor::Middle, TEXT, NO_BASELINE);
        }
    }
    for (i, series) in curve::drawn(&comparison.experiment).enumerate() {
        let top = bottom + 28.0 + i as f64 * curve::HEIGHT;
        curve::draw(&mut svg, comparison, series, top);
    }
    for (i, line) in caveat.iter().enumerate() {
        let y = height - 14.0 - LINE * (caveat.len() - 1 - i) as f64;
        svg.text([MARGIN, y], Anchor::Start, SMALL, line.trim());
    }
    svg.finish(&format!(
        "refit compare: {}",
        subject(&comparison.experiment)
    ))
}

/// Lines beneath the title.
fn subtitles(experiment: &Experiment) -> Vec<String> {
    let with = with(experiment).map(|with| format!("{} {}", with.label, with.text));
    question(experiment).into_iter().chain(with).collect()
}

fn caveat(comparison: &Comparison) -> Vec<String> {
    let level = format::magnitude(1.0 - OVERALL_ALPHA);
    let what = format!(
        "Each dot is one run{}, in their order; a line joins the two of a round pair; a cross does not count. Variants \
         within the band (±{}) count as the same. In {level} of comparisons all intervals hold at once; all numbers \
         are of this machine and this day.",
        if keeps_service(&comparison.experiment) {
            " of one service that was started once"
        } else if is_service(&comparison.experiment) {
            " of a freshly started service"
        } else {
            ""
        },
        format::margin(comparison.experiment.delta)
    );
    let origin = format!(
        "{}; refit {}, {} UTC",
        summary(comparison),
        comparison.experiment.refit,
        format::date(comparison.experiment.started_unix)
    );
    [what, origin]
        .iter()
        .flat_map(|text| fold(text, CAVEAT))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use refit_lab::Effects;
    use refit_lab::experiment::Samples;
    use roxmltree::{Document, Node};

    fn with_class<'a>(document: &'a Document, class: &str) -> impl Iterator<Item = Node<'a, 'a>> {
        document.descendants().filter(move |node| {
            let classes = node.attribute("class").unwrap_or_default();
            classes.split(' ').any(|one| one == class)
        })
    }

    #[test]
    fn every_run_that_counts_is_drawn_and_every_pair_joined() {
        let mut comparison = sample::experiment();
        comparison.experiment.runs.as_mut_slice()[20].failure = Some("exit code 1".to_owned());
        let text = svg(&comparison);
        let document = Document::parse(&text).unwrap();
        let marks = |class: &str| -> usize {
            let paths = with_class(&document, class).filter_map(|node| node.attribute("d"));
            paths.map(|d| d.matches('m').count()).sum()
        };
        let counted: usize = (0..6)
            .map(|variant| comparison.experiment.runs.counted(variant).count())
            .sum();
        assert_eq!(counted, 14 * 2 * 6 - 1);
        // A pair's line has a dot at both ends.
        assert_eq!((marks("pair"), marks("run")), (14 * 6 - 1, 1));
        assert_eq!(2 * marks("pair") + marks("run"), counted);
        let dotted = text.matches("marker:url(#dot").count();
        assert_eq!((dotted, text.matches("<marker id").count()), (6, 6));
        assert_eq!(marks("warmup"), 12);
        assert_eq!(marks("failed"), 2);
        assert_eq!(with_class(&document, "interval").count(), 5);
        assert_eq!(text, svg(&comparison));
    }

    #[test]
    fn everything_lies_on_the_sheet() {
        let mut comparison = sample::experiment();
        // A warm-up far beyond the scale is drawn at its edge.
        comparison.experiment.runs.as_mut_slice()[0]
            .run
            .metrics
            .wall_ns *= 1000;
        let text = svg(&comparison);
        let document = Document::parse(&text).unwrap();
        let height: f64 = document
            .root_element()
            .attribute("height")
            .unwrap()
            .parse()
            .unwrap();
        let mut seen = 0;
        for node in document.descendants() {
            for (names, most) in [
                (["x", "cx", "x1", "x2"], WIDTH),
                (["y", "cy", "y1", "y2"], height),
            ] {
                for value in names.iter().filter_map(|name| node.attribute(*name)) {
                    let value: f64 = value.parse().unwrap();
                    assert!((0.0..=most).contains(&value), "{node:?}");
                }
            }
            let path = node.attribute("d").unwrap_or_default().replace("h0", "");
            let (mut x, mut y) = (0.0, 0.0);
            let path = path.replace('h', "lh").replace('v', "lv");
            for place in path.split(['m', 'l']).filter(|place| !place.is_empty()) {
                let steps = place.replace(['h', 'v'], "").replace('-', " -");
                let steps = steps.split_whitespace().map(|n| n.parse::<f64>().unwrap());
                let (right, down) = match (place.as_bytes()[0], &*steps.collect::<Vec<_>>()) {
                    (b'h', &[right]) => (right, 0.0),
                    (b'v', &[down]) => (0.0, down),
                    (_, &[right, down]) => (right, down),
                    _ => panic!("{place}"),
                };
                (x, y) = (x + right, y + down);
                assert!(
                    (0.0..=WIDTH).contains(&x) && (0.0..=height).contains(&y),
                    "{node:?}"
                );
                seen += 1;
            }
        }
        // Two for each pair, and the warm-up.
        assert!(seen > 2 * 14 * 6 + 12);
    }

    #[test]
    fn a_command_of_any_words_gives_a_document() {
        let mut comparison = sample::experiment();
        comparison.experiment.command = vec!["<&\">\u{1}".to_owned(), "x".repeat(500)];
        comparison.experiment.variants[1].name = "env.A=</svg>\u{0}".to_owned();
        Document::parse(&svg(&comparison)).unwrap();
    }

    #[test]
    fn without_a_run_it_says_so() {
        let mut comparison = sample::experiment();
        comparison.experiment.runs = Samples::default();
        comparison.effects = Effects::default();
        let text = svg(&comparison);
        assert!(text.contains("no run of the baseline counts yet"));
        Document::parse(&text).unwrap();
    }
}
