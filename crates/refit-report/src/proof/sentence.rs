//! The answer in a sentence.

use refit_crash::CrashReport;
use refit_lab::{Comparison, Verdict};
use refit_run::printable;
use refit_stats::Measure;

use super::Proof;
use super::front::{places, unbeaten};
use super::row::{Row, cuts, effect};
use crate::crash::sentence::{self as crash, Manner};
use crate::format;
use crate::sentence::{MOST, gives};

/// What each variant that nothing beats gives and takes; without one, that nothing gains.
pub fn sentence(comparison: &Comparison, proof: &Proof, rows: &[Row]) -> String {
    let measure = comparison.experiment.main_metric().measure;
    let report = cuts(proof);
    let mut shown = match report {
        Some(report) if report.invalid.is_none() => {
            let mut front = unbeaten(&places(rows, measure));
            front.retain(|index| gaining(rows).contains(index));
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
    printable(&parts.join("; "))
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
    let gives = gives(effect, measure);
    let change = format::percent(effect.change);
    match (report, &row.loss) {
        (Some(_), Some(loss)) => {
            let judged = crash::judged(loss, row.breaks_class);
            format!("{name} {gives} ({change}) and {}{judged}", takes(row))
        }
        (Some(_), None) if !row.gain.variant.risks_data() => {
            let class = row.gain.variant.class;
            format!("{name} {gives} ({change}; {class}, not cut)")
        }
        (Some(_), None) => format!("{name} {gives} ({change}; not cut)"),
        (None, _) => format!("{name} {gives} ({change})"),
    }
}

fn takes(row: &Row) -> String {
    row.loss.as_ref().map_or(String::new(), crash::takes)
}

/// What the program loses by itself is no variant's fault.
fn own_loss(rows: &[Row]) -> Option<String> {
    let baseline = rows.first()?;
    let loses = baseline
        .manner
        .is_some_and(|manner| manner > Manner::Nothing);
    loses.then(|| format!("the program itself {}", takes(baseline)))
}
