//! A scan: what a candidate changes at each value of one setting.

use refit_lab::{Comparison, Scan, ScanPoint};
use refit_run::printable;
use refit_stats::FEWEST_PAIRS;

use crate::fold::fold;
use crate::format;
use crate::paint::Style;
use crate::row::{Row, rows};
use crate::standing::{Standing, candidates, standing};
use crate::table::{Column, lines, width};
use crate::title::title;

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
}

/// The answer, and a table of every candidate at every value; every line ends with a newline.
#[must_use]
pub fn terminal(scan: &Scan, style: &Style) -> String {
    let mut out = fold(&answer(scan), style.width);
    let Some(first) = scan.points.first() else {
        return out.join("\n") + "\n";
    };
    out.extend(fold(&title(&first.comparison.experiment), style.width));
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
    let columns = [
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
    ];
    let mut shown: Vec<&Column> = columns.iter().collect();
    // Those that can be left out where a terminal is narrow; the answer has the class.
    for title in ["class", "round pairs", "baseline"] {
        if width(&shown) > style.width {
            shown.retain(|column| column.title != title);
        }
    }
    out.extend(lines(&shown, style.colour));
    let together = format!(
        "the intervals hold together at {level} for the {} values that were named",
        scan.named
    );
    out.extend(fold(&together, style.width));
    out.extend(
        more_time(scan)
            .iter()
            .flat_map(|text| fold(text, style.width)),
    );
    out.push(String::new());
    out.join("\n")
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
    let mut names: Vec<String> = Vec::new();
    for point in &scan.points {
        for row in candidates(&point.comparison) {
            if !names.contains(&row.name) {
                names.push(row.name);
            }
        }
    }
    let told: Vec<(String, bool)> = names.iter().map(|name| told(scan, name)).collect();
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
    let decided = |word: &Word| matches!(word, Word::Gains | Word::Loses | Word::Same);
    let mut words = found.iter().map(|(word, ..)| *word).filter(decided);
    let first = words.next();
    let differs = words.any(|word| Some(word) != first);
    (format!("`{name}` ({class}) {}", parts.join(", ")), differs)
}

#[cfg(test)]
mod tests {
    use refit_lab::Verdict;

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
}
