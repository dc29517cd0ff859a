//! The table of verdicts, with each interval as a bar.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord};
use refit_stats::{Measure, OVERALL_ALPHA};

use super::colour;
use super::elements::tone;
use super::grid::below;
use crate::bar::{Scale, changes, is_drawable};
use crate::format;
use crate::markup::number;
use crate::markup::{At, Markup};
use crate::row::{Row, table as columns_of, with_noise};
use crate::table::{Column, Content, Kind, Lines};
use crate::title::why;

/// Height of a bar, in pixels.
const HEIGHT: f64 = 26.0;

/// The class of a column's title, and what its cells have in addition.
fn classes(column: &Column) -> [&'static str; 2] {
    match (column.content, column.kind) {
        (Content::Name, _) => ["name", ""],
        (Content::Value, _) => ["number", " value"],
        (Content::Change, _) => ["number", " change"],
        // The interval is drawn.
        (Content::Interval, _) => ["bar", ""],
        (Content::Verdict, _) => ["verdict", ""],
        (_, Kind::Numbers) => ["number side", ""],
        _ => ["side", ""],
    }
}

/// A table of effects.
pub struct Effects<'a> {
    /// Its columns; that of [`Content::Interval`] is drawn.
    pub columns: Vec<&'a Column>,
    /// Of each row.
    pub effects: Vec<Option<&'a EffectRecord>>,
    /// Classes of each row, the one that gives it its colour among them.
    pub classes: Vec<String>,
    /// What the bars mean.
    pub caption: String,
    /// Within ± this relative change there is no effect.
    pub delta: f64,
}

/// One row for each variant; on a phone each is a block.
pub fn table(section: &mut Markup, comparison: &Comparison) {
    let rows = with_noise(comparison);
    let mut table = columns_of(&comparison.experiment, &rows);
    // It stands below the name.
    table
        .extras
        .retain(|column| column.content != Content::Class);
    table.name.below = rows
        .iter()
        .map(|row| about(&comparison.experiment, row))
        .collect();
    let class = |row: &Row| {
        let noise = match row.variant.role {
            Role::Hidden => "noise ",
            _ => "",
        };
        let colour = colour::class(&comparison.experiment, row.index);
        format!("{noise}{colour}")
    };
    let level = format::magnitude(1.0 - OVERALL_ALPHA);
    let rest = format!("In {level} of comparisons all intervals hold at once.");
    let effects = Effects {
        columns: table.columns(),
        effects: rows.iter().map(|row| row.effect).collect(),
        classes: rows.iter().map(class).collect(),
        caption: caption(
            comparison.experiment.main_metric().measure,
            comparison.experiment.delta,
            &rest,
        ),
        delta: comparison.experiment.delta,
    };
    effects.table(section);
}

impl Effects<'_> {
    /// One row for each effect; on a phone each is a block.
    pub fn table(&self, section: &mut Markup) {
        let all = self.effects.iter().flatten();
        let bars = Bars {
            scale: Scale::around(all.flat_map(|effect| changes(effect)), self.delta),
            delta: self.delta,
        };
        section.element("table", &[("class", "verdicts")], |table| {
            table.leaf("caption", &[], &self.caption);
            table.element("thead", &[], |head| {
                head.element("tr", &[], |tr| {
                    for column in &self.columns {
                        tr.classed("th", classes(column)[0], |th| {
                            th.text(&column.title);
                            if column.content == Content::Interval {
                                bars.ends(th);
                            }
                        });
                    }
                });
            });
            table.element("tbody", &[], |body| {
                for (i, effect) in self.effects.iter().enumerate() {
                    body.element("tr", &[("class", &self.classes[i])], |tr| {
                        for column in &self.columns {
                            cell(tr, column, i, |td, text| bars.draw(td, *effect, text));
                        }
                    });
                }
            });
        });
    }
}

/// What stands below a variant's name.
fn about(experiment: &Experiment, row: &Row) -> Lines {
    let risk = match row.class.as_str() {
        "safe" => "class",
        _ => "class risk",
    };
    let why = why(experiment, row.variant).unwrap_or_default();
    let mut lines = vec![(row.class.clone(), risk), (why, "why")];
    lines.retain(|(text, _)| !text.is_empty());
    lines
}

fn cell(tr: &mut Markup, column: &Column, row: usize, bar: impl FnOnce(&mut Markup, &str)) {
    let (text, says) = &column.cells[row];
    let class = &*classes(column).concat();
    let title = (column.content == Content::Side).then_some(("data-title", &*column.title));
    match column.content {
        Content::Name => tr.element("th", &[("class", class), ("scope", "row")], |th| {
            th.leaf("span", &[("class", "dot")], "");
            let name = match column.kind {
                Kind::Code | Kind::Variant => "code",
                _ => "span",
            };
            th.leaf(name, &[], text);
            below(th, column, row);
        }),
        Content::Verdict => tr.classed("td", class, |td| {
            if !text.is_empty() {
                td.leaf("strong", &[("class", tone(*says))], text);
            }
        }),
        Content::Interval => tr.classed("td", class, |td| {
            bar(td, text);
            if !text.is_empty() {
                td.leaf("span", &[("class", "ends")], text);
            }
        }),
        // On a phone there are no titles above it.
        _ => tr.leaf(
            "td",
            &[&[("class", class)], title.as_slice()].concat(),
            text,
        ),
    }
}

/// What the bars mean; `rest` stands at the end.
pub fn caption(measure: Measure, delta: f64, rest: &str) -> String {
    let better = match measure {
        Measure::Rate => "right of 0 is faster",
        Measure::Duration => "left of 0 is faster",
        Measure::Amount => "left of 0 is less",
    };
    format!(
        "Ratios to the baseline, on a logarithmic scale: {better}; what lies within the grey band (±{}) counts as the \
         same. {rest}",
        format::margin(delta),
    )
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
    fn ends(&self, th: &mut Markup) {
        th.element("svg", &[("height", "14"), ("aria-hidden", "true")], |svg| {
            let mut text = |at: f64, anchor: &str, text: &str| {
                svg.label([At::Part(at), At::Px(11.0)], anchor, text);
            };
            let zero = self.at(0.0);
            text(zero, "middle", "0");
            if zero > 0.3 {
                let low = format::percent_short(self.scale.low.exp_m1());
                text(0.0, "start", &low);
            }
            if zero < 0.7 {
                let high = format::percent_short(self.scale.high.exp_m1());
                text(1.0, "end", &high);
            }
        });
    }

    fn draw(&self, td: &mut Markup, effect: Option<&EffectRecord>, text: &str) {
        let effect = effect.filter(|effect| is_drawable(effect));
        let label = match effect {
            Some(effect) => format!("{} {text}", format::percent(effect.change)),
            None => "no effect".to_owned(),
        };
        let height = number(HEIGHT);
        let attributes = [
            ("height", &*height),
            ("role", "img"),
            ("aria-label", &label),
        ];
        td.element("svg", &attributes, |svg| {
            let (height, middle) = (At::Px(HEIGHT), At::Px(HEIGHT / 2.0));
            let at = |change: f64| At::Part(self.at(change));
            let margin = self.delta.abs().ln_1p();
            let [left, right] = [-margin, margin].map(|log| self.scale.part(log));
            let band = [At::Part(right - left), height];
            svg.rect("band", [At::Part(left), At::Px(0.0)], band);
            svg.line("zero", [at(0.0), At::Px(0.0)], [at(0.0), height]);
            let Some(effect) = effect else {
                return;
            };
            let place = [at(effect.change), middle];
            svg.line("stem", [at(0.0), middle], place);
            if let Some([low, high]) = effect.interval {
                svg.line("reach", [at(low), middle], [at(high), middle]);
            }
            svg.circle("estimate", place, "5.5");
        });
    }
}
