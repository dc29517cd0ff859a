//! The table of verdicts, with each interval as a bar.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord};
use refit_stats::{Measure, OVERALL_ALPHA};

use super::markup::{Html, part};
use super::{colour, tone};
use crate::bar::{Scale, changes};
use crate::format;
use crate::row::{Row, main_metric, rows, side_titles};
use crate::svg::number;
use crate::title::why;

/// Height of a bar, in pixels.
const HEIGHT: f64 = 26.0;

/// One row for each variant; on a phone each is a block.
pub fn table(section: &mut Html, experiment: &Comparison) {
    let rows = rows(experiment);
    let noise = hidden(experiment);
    let effects = rows.iter().filter_map(|row| row.effect).chain(noise);
    let bars = Bars {
        scale: Scale::around(effects.flat_map(changes), experiment.delta),
        delta: experiment.delta,
    };
    let sides = side_titles(experiment);
    section.element("table", &[("class", "verdicts")], |table| {
        table.leaf("caption", &[], &caption(experiment));
        table.element("thead", &[], |head| {
            head.element("tr", &[], |tr| {
                let th =
                    |tr: &mut Html, class, text: &str| tr.leaf("th", &[("class", class)], text);
                th(tr, "name", "variant");
                th(tr, "number", &main_metric(experiment));
                th(tr, "number", "vs baseline");
                tr.element("th", &[("class", "bar")], |th| {
                    th.text(&format!(
                        "{} interval",
                        format::magnitude(1.0 - OVERALL_ALPHA)
                    ));
                    bars.ends(th);
                });
                th(tr, "verdict", "verdict");
                th(tr, "number side", sides[0]);
                th(tr, "side", sides[1]);
            });
        });
        table.element("tbody", &[], |body| {
            for shown in &rows {
                row(body, experiment, shown, &bars);
            }
            if let Some(effect) = noise {
                today(body, experiment, effect, &bars);
            }
        });
    });
}

/// What the bars mean.
fn caption(experiment: &Experiment) -> String {
    let better = match experiment.main_metric().measure {
        Measure::Rate => "right of 0 is faster",
        Measure::Duration => "left of 0 is faster",
        Measure::Amount => "left of 0 is less",
    };
    format!(
        "Ratios to the baseline, on a logarithmic scale: {better}; variants within the grey band (±{}) \
         count as the same. In {} of comparisons all intervals hold at once.",
        format::magnitude(experiment.delta),
        format::magnitude(1.0 - OVERALL_ALPHA)
    )
}

fn row(body: &mut Html, experiment: &Experiment, row: &Row, bars: &Bars) {
    let colour = colour::class(experiment, row.index);
    body.element("tr", &[("class", &colour)], |tr| {
        tr.element("th", &[("class", "name"), ("scope", "row")], |th| {
            th.leaf("span", &[("class", "dot")], "");
            th.leaf("code", &[], &row.name);
            if !row.class.is_empty() {
                let risk = if row.class == "safe" {
                    "class"
                } else {
                    "class risk"
                };
                th.text(" ");
                th.leaf("span", &[("class", risk)], &row.class);
            }
            if row.variant.role == Role::Bare {
                th.leaf("span", &[("class", "why")], "the program without refit");
            }
            if let Some(why) = why(experiment, row.variant) {
                th.leaf("span", &[("class", "why")], &why);
            }
        });
        cell(tr, "number value", &row.value);
        cell(tr, "number change", &row.change);
        interval(tr, row.effect, &row.interval, bars);
        tr.element("td", &[("class", "verdict")], |td| {
            if row.verdict.is_empty() {
                return;
            }
            td.leaf("strong", &[("class", tone(row.tone))], &row.verdict);
        });
        for (i, (title, text)) in side_titles(experiment).iter().zip(&row.sides).enumerate() {
            let class = if i == 0 { "number side" } else { "side" };
            // On a phone there are no titles above it.
            let attributes = [("class", class), ("data-title", *title)];
            tr.leaf("td", &attributes, text);
        }
    });
}

fn cell(tr: &mut Html, class: &str, text: &str) {
    tr.leaf("td", &[("class", class)], text);
}

/// The hidden baseline: what an effect of nothing looks like today.
fn hidden(experiment: &Comparison) -> Option<&EffectRecord> {
    let variants = &mut experiment.variants.iter();
    let hidden = variants.position(|variant| variant.role == Role::Hidden)?;
    experiment.effects.get(hidden, &experiment.main)
}

fn today(body: &mut Html, experiment: &Experiment, effect: &EffectRecord, bars: &Bars) {
    let class = format!("noise {}", colour::class(experiment, effect.variant));
    body.element("tr", &[("class", &class)], |tr| {
        tr.element("th", &[("class", "name"), ("scope", "row")], |th| {
            th.leaf("span", &[("class", "dot")], "");
            th.text("a second baseline: today's noise");
        });
        cell(tr, "number value", "");
        cell(tr, "number change", &format::percent(effect.change));
        interval(tr, Some(effect), &format::interval(effect.interval), bars);
        for class in ["verdict", "number side", "side"] {
            cell(tr, class, "");
        }
    });
}

fn interval(tr: &mut Html, effect: Option<&EffectRecord>, text: &str, bars: &Bars) {
    tr.element("td", &[("class", "bar")], |td| {
        bars.draw(td, effect, text);
        if !text.is_empty() {
            td.leaf("span", &[("class", "ends")], text);
        }
    });
}

/// What all bars of a table share.
struct Bars {
    scale: Scale,
    delta: f64,
}

impl Bars {
    fn at(&self, change: f64) -> f64 {
        self.scale.part(change.ln_1p())
    }

    /// Both ends of the scale and its 0, where they do not touch.
    fn ends(&self, th: &mut Html) {
        th.element("svg", &[("height", "14"), ("aria-hidden", "true")], |svg| {
            let mut text = |at: f64, anchor: &str, text: &str| {
                let at = part(at);
                svg.leaf(
                    "text",
                    &[("x", &at), ("y", "11"), ("text-anchor", anchor)],
                    text,
                );
            };
            let zero = self.at(0.0);
            text(zero, "middle", "0");
            if zero > 0.3 {
                text(
                    0.0,
                    "start",
                    &format::percent_short(self.scale.low.exp_m1()),
                );
            }
            if zero < 0.7 {
                text(1.0, "end", &format::percent_short(self.scale.high.exp_m1()));
            }
        });
    }

    fn draw(&self, td: &mut Html, effect: Option<&EffectRecord>, text: &str) {
        let is_a_change = |change: f64| change > -1.0 && change.is_finite();
        let effect = effect.filter(|effect| changes(effect).all(is_a_change));
        let label = match effect {
            Some(effect) => format!("{} {text}", format::percent(effect.change)),
            None => "no effect".to_owned(),
        };
        let [height, middle] = [HEIGHT, HEIGHT / 2.0].map(number);
        let attributes = [
            ("height", &*height),
            ("role", "img"),
            ("aria-label", &label),
        ];
        td.element("svg", &attributes, |svg| {
            let margin = self.delta.abs().ln_1p();
            let left = self.scale.part(-margin);
            let (x, width) = (part(left), part(self.scale.part(margin) - left));
            let band = [
                ("class", "band"),
                ("x", &*x),
                ("width", &width),
                ("height", &height),
            ];
            svg.void("rect", &band);
            let zero = part(self.at(0.0));
            svg.void(
                "line",
                &[
                    ("class", "zero"),
                    ("x1", &zero),
                    ("x2", &zero),
                    ("y2", &height),
                ],
            );
            let Some(effect) = effect else {
                return;
            };
            let place = part(self.at(effect.change));
            let stem = [("class", "stem"), ("x1", &*zero), ("x2", &place)];
            svg.void(
                "line",
                &[&stem[..], &[("y1", &middle), ("y2", &middle)]].concat(),
            );
            if let Some(ends) = effect.interval {
                let [low, high] = ends.map(|change| part(self.at(change)));
                let ends = [
                    ("x1", &*low),
                    ("x2", &high),
                    ("y1", &middle),
                    ("y2", &middle),
                ];
                svg.void("line", &[&[("class", "reach")], &ends[..]].concat());
            }
            let place = [
                ("class", "estimate"),
                ("cx", &*place),
                ("cy", &middle),
                ("r", "5.5"),
            ];
            svg.void("circle", &place);
        });
    }
}
