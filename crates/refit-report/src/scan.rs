//! A scan: what a candidate changes at each value of one setting, as text, as a page and as a picture.

mod chart;
mod html;
mod svg;

pub use html::html;
pub use svg::svg;

use std::fmt::Write;

use refit_lab::{Comparison, Scan, ScanPoint};
use refit_run::printable;
use refit_stats::FEWEST_PAIRS;

use crate::fold::fold;
use crate::format;
use crate::markdown::{code, escaped, grid, in_markdown, origin};
use crate::paint::Style;
use crate::row::{Row, rows};
use crate::standing::{Standing, candidates, standing};
use crate::table::{Column, lines, width};
use crate::title::{subject, title};

/// What a candidate comes to at a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Gains,
    Loses,
    Same,
    WithinNoise,
    Open,
    Out,
}

impl Word {
    fn of(standing: Standing) -> Word {
        match standing {
            Standing::Gains { .. } => Word::Gains,
            Standing::Loses => Word::Loses,
            Standing::Same => Word::Same,
            Standing::WithinNoise => Word::WithinNoise,
            Standing::Unconfirmed(_) | Standing::Open | Standing::Early => Word::Open,
            Standing::Out => Word::Out,
        }
    }

    /// In the order in which they are told.
    const ALL: [Word; 6] = [
        Word::Gains,
        Word::Loses,
        Word::Same,
        Word::WithinNoise,
        Word::Open,
        Word::Out,
    ];

    fn text(self) -> &'static str {
        match self {
            Word::Gains => "gains",
            Word::Loses => "loses",
            Word::Same => "makes no difference",
            Word::WithinNoise => "differs by no more than the noise",
            Word::Open => "is not decided",
            Word::Out => "is disqualified",
        }
    }

    fn is_decided(self) -> bool {
        matches!(self, Word::Gains | Word::Loses | Word::Same)
    }
}

/// The answer, and a table of every candidate at every value; every line ends with a newline.
#[must_use]
pub fn terminal(scan: &Scan, style: &Style) -> String {
    let mut out = fold(&answer(scan), style.width);
    let Some(first) = scan.points.first() else {
        return out.join("\n") + "\n";
    };
    out.extend(fold(&title(&first.comparison.experiment), style.width));
    let columns = columns(scan);
    let mut shown: Vec<&Column> = columns.iter().collect();
    // Those that can be left out where a terminal is narrow; the answer has the class.
    for title in ["class", "round pairs", "baseline"] {
        if width(&shown) > style.width {
            shown.retain(|column| column.title != title);
        }
    }
    out.extend(lines(&shown, style.colour));
    out.extend(fold(&together(scan), style.width));
    out.extend(
        more_time(scan)
            .iter()
            .flat_map(|text| fold(text, style.width)),
    );
    out.push(String::new());
    out.join("\n")
}

/// GitHub's Markdown.
#[must_use]
pub fn markdown(scan: &Scan) -> String {
    let mut out = format!("{}\n\n", in_markdown(&answer(scan)));
    if let Some(first) = scan.points.first() {
        let subject = subject(&first.comparison.experiment);
        let _ = writeln!(out, "**refit compare --scan** {}\n", code(&subject));
        out.push_str(&grid(&columns(scan).iter().collect::<Vec<_>>()));
    }
    out.push('\n');
    for text in [Some(together(scan)), more_time(scan)].iter().flatten() {
        let _ = writeln!(out, "- {}", escaped(text));
    }
    let started = scan.points.first();
    let started = started.map_or(0, |point| point.comparison.experiment.started_unix);
    out.push_str(&origin(&scan.refit, started));
    out
}

/// The table: every candidate at every value.
fn columns(scan: &Scan) -> Vec<Column> {
    let all: Vec<(&ScanPoint, Row)> = scan
        .points
        .iter()
        .flat_map(|point| {
            candidates(&point.comparison)
                .into_iter()
                .map(move |row| (point, row))
        })
        .collect();
    let of = |cell: fn(&(&ScanPoint, Row)) -> String| all.iter().map(cell);
    let level = format::magnitude(1.0 - refit_stats::OVERALL_ALPHA);
    vec![
        Column::numbers(&scan.setting, of(|(point, _)| point.value.clone())),
        Column::numbers("baseline", of(|(point, _)| baseline(&point.comparison))),
        Column::words("variant", of(|(_, row)| row.name.clone())),
        Column::numbers("vs baseline", of(|(_, row)| row.change.clone())),
        Column::numbers(
            &format!("{level} interval"),
            of(|(_, row)| row.interval.clone()),
        ),
        Column::words("verdict", of(|(_, row)| row.verdict.clone())),
        Column::numbers(
            "round pairs",
            of(|(point, _)| point.comparison.experiment.plan.pairs.to_string()),
        ),
        Column::words("class", of(|(_, row)| row.class.clone())),
    ]
}

/// What the intervals hold for.
fn together(scan: &Scan) -> String {
    let level = format::magnitude(1.0 - refit_stats::OVERALL_ALPHA);
    format!(
        "the intervals hold together at {level} for the {} values that were named",
        scan.named
    )
}

/// The candidates in the order in which they were named.
fn names(scan: &Scan) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for point in &scan.points {
        for row in candidates(&point.comparison) {
            if !names.contains(&row.name) {
                names.push(row.name);
            }
        }
    }
    names
}

/// Where there were too few round pairs for an interval, with the budget of six of them at each value.
fn more_time(scan: &Scan) -> Option<String> {
    let plan = |point: &ScanPoint| point.comparison.experiment.plan.clone();
    let few = scan
        .points
        .iter()
        .filter(|point| plan(point).pairs < FEWEST_PAIRS);
    let few: Vec<&ScanPoint> = few.collect();
    let fewest = few.iter().map(|point| plan(point).pairs).min()?;
    let values: Vec<&str> = few.iter().map(|point| &*point.value).collect();
    let share = few
        .iter()
        .map(|point| plan(point).budget_s)
        .fold(0.0, f64::max);
    let times = 6_usize.div_ceil(fewest.max(1));
    let minutes = (share * (times * scan.named) as f64 / 60.0).ceil();
    Some(format!(
        "too few round pairs for an interval at {}={}: repeat with --budget {minutes}m",
        scan.setting,
        values.join(", ")
    ))
}

/// The main metric of the baseline.
fn baseline(comparison: &Comparison) -> String {
    rows(comparison)
        .first()
        .map(|row| row.value.clone())
        .unwrap_or_default()
}

/// What each candidate does, and whether that depends on the setting.
fn answer(scan: &Scan) -> String {
    let told: Vec<(String, bool)> = names(scan).iter().map(|name| told(scan, name)).collect();
    let words: Vec<String> = told.iter().map(|(words, _)| words.clone()).collect();
    let lead = match told.iter().any(|(_, differs)| *differs) {
        true => format!("It depends on {}: ", scan.setting),
        false => String::new(),
    };
    let missing = scan.named.saturating_sub(scan.points.len());
    let missing = match missing {
        0 => String::new(),
        some => format!("; {some} of {} values were not measured", scan.named),
    };
    let load = scan
        .points
        .first()
        .and_then(|point| other_load(scan, point));
    let load = load.map(|load| format!("; measured at {load}"));
    printable(&format!(
        "{lead}{}{missing}{}",
        words.join("; "),
        load.unwrap_or_default()
    ))
}

/// What else was asked of the service.
fn other_load(scan: &Scan, point: &ScanPoint) -> Option<String> {
    let load = &point.comparison.experiment.recipe.as_ref()?.load;
    let others = load
        .iter()
        .filter(|one| scan.setting != format!("load.{}", one.name));
    let words: Vec<String> = others.map(|one| one.words()).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// What one candidate does at which values, and whether that differs, as far as it is decided.
fn told(scan: &Scan, name: &str) -> (String, bool) {
    let mut found: Vec<(Word, &str, String)> = Vec::new();
    let mut class = String::new();
    for point in &scan.points {
        for row in candidates(&point.comparison) {
            if row.name == name {
                let word = Word::of(standing(&point.comparison, &row));
                found.push((
                    word,
                    &point.value,
                    format!("{} {}", row.change, row.interval),
                ));
                class = row.class;
            }
        }
    }
    let mut parts = Vec::new();
    for word in Word::ALL {
        let at = found.iter().filter(|(one, ..)| *one == word);
        let at: Vec<String> = at
            .map(|(_, value, change)| match word {
                Word::Gains | Word::Loses => format!("{value} ({change})"),
                _ => (*value).to_owned(),
            })
            .collect();
        if !at.is_empty() {
            parts.push(format!(
                "{} at {}={}",
                word.text(),
                scan.setting,
                at.join(", ")
            ));
        }
    }
    let words = found.iter().map(|(word, ..)| *word);
    let mut words = words.filter(|word| word.is_decided());
    let first = words.next();
    let differs = words.any(|word| Some(word) != first);
    (format!("`{name}` ({class}) {}", parts.join(", ")), differs)
}

#[cfg(test)]
pub(crate) mod tests {
    use refit_lab::Verdict;
    use roxmltree::Document;

    use super::*;
    use crate::sample;

    /// Two values of a setting; at the second one `sync=off` has this verdict, and is faster by nearly nothing.
    fn scan(verdict: Option<Verdict>) -> Scan {
        let mut scan = Scan::new("env.N", 2);
        let mut second = sample::experiment();
        let effect = sample::effect_mut(&mut second, 1, "wall");
        (effect.gain, effect.verdict) = (false, verdict);
        if verdict == Some(Verdict::Faster) {
            effect.change = -0.000_1;
        }
        for (value, comparison) in [("1", sample::experiment()), ("2", second)] {
            scan.points.push(ScanPoint {
                value: value.to_owned(),
                comparison,
            });
        }
        scan
    }

    #[test]
    fn an_answer_depends_on_the_setting_only_where_both_are_decided() {
        for (verdict, depends, at_two) in [
            (Some(Verdict::Slower), true, ", loses at env.N=2 ("),
            (
                Some(Verdict::Same),
                true,
                ", makes no difference at env.N=2",
            ),
            // What is proven, and not more than the noise.
            (
                Some(Verdict::Faster),
                false,
                ", differs by no more than the noise at env.N=2",
            ),
            (
                Some(Verdict::Inconclusive),
                false,
                ", is not decided at env.N=2",
            ),
            (None, false, ", is not decided at env.N=2"),
        ] {
            let text = answer(&scan(verdict));
            assert_eq!(text.starts_with("It depends on env.N: "), depends, "{text}");
            assert!(
                text.contains("`sync=off` (loses-on-crash) gains at env.N=1 (−"),
                "{text}"
            );
            assert!(text.contains(at_two), "{text}");
            assert!(
                text.contains("`malloc=jemalloc` (safe) makes no difference at env.N=1, 2"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_was_not_measured_is_told() {
        let mut scan = scan(None);
        scan.points.truncate(1);
        let text = answer(&scan);
        assert!(
            text.ends_with("; 1 of 2 values were not measured"),
            "{text}"
        );
        assert!(!text.contains("env.N=2"), "{text}");
    }

    #[test]
    fn too_few_round_pairs_ask_for_a_longer_budget() {
        let mut scan = scan(None);
        assert_eq!(more_time(&scan), None);
        let plan = &mut scan.points[1].comparison.experiment.plan;
        (plan.pairs, plan.budget_s) = (2, 60.0);
        // Three times as many pairs, at two values of a minute each.
        let text = "too few round pairs for an interval at env.N=2: repeat with --budget 6m";
        assert_eq!(more_time(&scan).as_deref(), Some(text));
    }

    /// Few runs, at three values.
    pub(crate) fn sample() -> Scan {
        let mut scan = scan(Some(Verdict::Slower));
        let effect = sample::effect_mut(&mut scan.points[1].comparison, 1, "wall");
        (effect.change, effect.interval) = (0.31, Some([0.22, 0.4]));
        let mut third = scan.points[1].clone();
        let effect = sample::effect_mut(&mut third.comparison, 1, "wall");
        (effect.change, effect.interval) = (0.02, Some([-0.05, 0.09]));
        effect.verdict = Some(Verdict::Inconclusive);
        third.value = "100".to_owned();
        scan.points.push(third);
        for point in &mut scan.points {
            let runs = &mut point.comparison.experiment.runs;
            *runs = runs.as_mut_slice()[..12].iter().cloned().collect();
        }
        scan.named = 3;
        scan
    }

    fn with_class(document: &Document, class: &str) -> Vec<f64> {
        let nodes = document.descendants();
        let of = nodes.filter(|node| {
            let classes = node.attribute("class").unwrap_or_default();
            classes.split(' ').any(|one| one == class)
        });
        let at = of.map(|node| node.attribute("cx").or(node.attribute("x1")).unwrap());
        at.map(|at| at.trim_end_matches('%').parse().unwrap())
            .collect()
    }

    #[test]
    fn every_effect_is_in_the_chart_where_its_value_lies() {
        let scan = sample();
        let candidates = names(&scan).len();
        if let Some(directory) = std::env::var_os("REFIT_SAMPLE_HTML") {
            let directory = std::path::Path::new(&directory);
            std::fs::write(directory.join("scan.html"), html(&scan)).unwrap();
            std::fs::write(directory.join("scan.svg"), svg(&scan)).unwrap();
        }
        let text = html(&scan);
        let body = text.strip_prefix("<!DOCTYPE html>\n").unwrap();
        let document = Document::parse(body).unwrap();
        let estimates = with_class(&document, "estimate");
        assert_eq!(estimates.len(), 3 * candidates);
        assert_eq!(with_class(&document, "reach").len(), 3 * candidates);
        // Two of three values are joined with the next one.
        assert_eq!(with_class(&document, "course").len(), 2 * candidates);
        // 1, 2 and 100 on a logarithmic scale, whatever the first candidate is shifted by.
        let [one, two, hundred] = [0, 1, 2].map(|at| estimates[at]);
        let part = (two - one) / (hundred - one);
        assert!(
            (part - 2.0_f64.ln() / 100.0_f64.ln()).abs() < 0.01,
            "{part}"
        );
        assert_eq!(with_class(&document, "undecided").len(), 4);
        Document::parse(&svg(&scan)).unwrap();
        assert!(markdown(&scan).contains("| 100 | "), "{}", markdown(&scan));
    }

    #[test]
    fn values_that_are_no_numbers_are_not_joined() {
        let mut scan = sample();
        for (point, value) in scan.points.iter_mut().zip(["reads", "writes", "1"]) {
            point.value = value.to_owned();
        }
        let text = svg(&scan);
        let document = Document::parse(&text).unwrap();
        assert_eq!(with_class(&document, "course").len(), 0);
        for value in [">reads<", ">writes<", ">1<"] {
            assert!(text.contains(value), "{text}");
        }
    }
}
