//! The answer in a sentence.

use refit_crash::CrashReport;
use refit_lab::{Comparison, EffectRecord, Verdict};
use refit_stats::Measure;

use super::Proof;
use super::front::{places, unbeaten};
use super::row::{Manner, Row, cuts, effect};
use crate::crash::row::{age, plural_images};
use crate::format::{self, number};

/// More variants than this are left to the table.
const MOST: usize = 4;

/// What each variant that nothing beats gives and takes; without one, that nothing gains.
pub fn sentence(comparison: &Comparison, proof: &Proof, rows: &[Row]) -> String {
    let measure = comparison.experiment.main_metric().measure;
    let report = cuts(proof);
    let mut shown = match report {
        Some(report) if report.invalid.is_none() => {
            let mut front = unbeaten(&places(rows, measure));
            front.retain(|index| *index != 0);
            let untold = |i: &usize| rows[*i].loss.is_some() && rows[*i].manner.is_none();
            front.extend(gaining(rows).into_iter().filter(untold));
            front
        }
        // Nothing is known of the risks, so nobody is beaten by less of it.
        _ => gaining(rows),
    };
    let mut parts = Vec::new();
    if shown.is_empty() {
        parts.push(nothing(rows));
        shown = (1..rows.len())
            .filter(|i| rows[*i].loss.is_some())
            .collect();
    }
    let more = shown.len().saturating_sub(MOST);
    // The most that can be had, at the end, is always among them.
    if more > 0 {
        let last = shown.len() - 1;
        shown.drain(last - more..last);
    }
    parts.extend(
        shown
            .into_iter()
            .map(|index| part(&rows[index], measure, report)),
    );
    if more > 0 {
        parts.push(format!("{more} more in the table"));
    }
    parts.extend(own_loss(rows));
    match proof {
        Proof::NotCut(_) => parts.push("what a power cut takes was not tested".to_owned()),
        Proof::Cut(report) if report.invalid.is_some() => {
            parts.push(
                "INVALID RUN of the crash lab: nothing can be concluded of a loss".to_owned(),
            );
        }
        Proof::Cut(_) => {}
    }
    parts.join("; ")
}

/// Candidates with a proven gain, in their order.
fn gaining(rows: &[Row]) -> Vec<usize> {
    let gains = |row: &Row| effect(row).is_some_and(|(effect, _)| effect.gain);
    (0..rows.len()).filter(|i| gains(&rows[*i])).collect()
}

fn nothing(rows: &[Row]) -> String {
    let mut open: Vec<String> = Vec::new();
    for row in rows {
        if let Some((_, Verdict::Inconclusive)) = effect(row) {
            open.push(format!("`{}`", row.gain.name));
        }
    }
    match open.as_slice() {
        [] if rows.iter().all(|row| effect(row).is_none()) => {
            "no gain is proven: too few runs for a verdict".to_owned()
        }
        [] => "no variant gains anything".to_owned(),
        open => format!("no gain is proven: inconclusive for {}", open.join(", ")),
    }
}

fn part(row: &Row, measure: Measure, report: Option<&CrashReport>) -> String {
    let name = format!("`{}`", row.gain.name);
    let Some((effect, _)) = effect(row).filter(|(effect, _)| effect.gain) else {
        return format!("{name} {}", takes(row));
    };
    let gain = format!("{name} {}", gives(effect, measure));
    match (report, &row.loss) {
        (Some(_), Some(_)) => format!("{gain} and {}{}", takes(row), bound(row)),
        (Some(_), None) if !row.gain.variant.risks_data() => {
            format!("{gain} ({}, not cut)", row.gain.variant.class)
        }
        (Some(_), None) => format!("{gain} (not cut)"),
        (None, _) => gain,
    }
}

/// `gives 1.9×`; of an amount `takes 20 % less`.
fn gives(effect: &EffectRecord, measure: Measure) -> String {
    let factor = Row::factor(measure, effect.change);
    let text = match factor {
        _ if !factor.is_finite() => "unknown".to_owned(),
        _ if factor < 1.095 => format!("{factor:.2}"),
        _ if factor < 9.95 => format!("{factor:.1}"),
        _ => format::count(factor),
    };
    match measure {
        Measure::Amount => format!("takes {} less", format::magnitude(effect.change)),
        Measure::Rate | Measure::Duration => format!("gives {text}×"),
    }
}

/// `lost at most 0.4 s in 200 images, newest only`.
fn takes(row: &Row) -> String {
    let Some(loss) = &row.loss else {
        return String::new();
    };
    let tally = &loss.tally;
    let Some(manner) = row.manner else {
        return match tally.images {
            0 => "was not cut".to_owned(),
            _ => "acknowledged nothing that a cut could take".to_owned(),
        };
    };
    let images = plural_images(tally.images);
    let lost = format!(
        "lost at most {} ({}) in {images}",
        tally.oldest_ns.map_or("nothing".to_owned(), age),
        items(tally.worst.0)
    );
    match manner {
        Manner::Nothing => format!("lost nothing in {images}"),
        Manner::Newest => format!("{lost}, newest only"),
        Manner::Holes => format!("{lost}, with holes"),
        Manner::Everything => "lost everything".to_owned(),
        Manner::Damaged => format!("left damage in {} of {images}", number(tally.bad_images)),
    }
}

/// How that compares with what the recipe claims.
fn bound(row: &Row) -> String {
    let known = row.loss.as_ref().filter(|_| row.manner.is_some());
    let mode = known.map(|loss| loss.mode);
    let Some(bound) = mode.and_then(|mode| mode.bound.as_ref()) else {
        return String::new();
    };
    let word = if row.breaks_class {
        "BREAKING"
    } else {
        "within"
    };
    format!(", {word} its bound ({})", bound.text)
}

fn items(n: usize) -> String {
    format::plural(n, "item")
}

/// What the program loses by itself is no variant's fault.
fn own_loss(rows: &[Row]) -> Option<String> {
    let baseline = rows.first()?;
    let loses = baseline
        .manner
        .is_some_and(|manner| manner > Manner::Nothing);
    loses.then(|| format!("the program itself {}", takes(baseline)))
}
