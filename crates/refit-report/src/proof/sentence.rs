//! The answer in a sentence.

use refit_crash::CrashReport;
use refit_lab::experiment::Role;
use refit_lab::{Comparison, EffectRecord};
use refit_run::printable;

use super::Proof;
use super::front::{places, unbeaten};
use super::row::{Row, cuts, effect};
use crate::crash::sentence::{self as crash, Manner};
use crate::format;
use crate::gain::gives;
use crate::sentence::{MOST, NO_GAIN, NOT_YET, ONLY_WHERE, WHERE, YES, costs};
use crate::standing::{Standing, standing};

/// Whether to take a variant, and on which condition; then what each that nothing beats gives and takes.
pub fn sentence(comparison: &Comparison, proof: &Proof, rows: &[Row]) -> String {
    let measure = comparison.experiment.main_metric().measure;
    let report = cuts(proof);
    let gaining = gaining(comparison, rows);
    let mut shown = match report {
        Some(report) if report.invalid.is_none() => {
            let mut front = unbeaten(&places(rows, measure));
            front.retain(|index| gaining.contains(index));
            let untold = |i: &usize| rows[*i].loss.is_some() && rows[*i].manner.is_none();
            front.extend(gaining.into_iter().filter(untold));
            front
        }
        // Nothing is known of the risks, so nobody is beaten by less of it.
        _ => gaining,
    };
    let mut parts = Vec::new();
    if shown.is_empty() {
        parts.push(nothing(comparison, rows));
        shown = (1..rows.len())
            .filter(|i| rows[*i].loss.is_some())
            .collect();
        let told = told(&mut shown);
        parts.extend(told.map(|index| takes_alone(&rows[index])));
    } else {
        let is_free = |index: &usize| is_free(rows, *index, report);
        let told: Vec<usize> = told(&mut shown).collect();
        let words = |index: &usize| part(comparison, &rows[*index], report);
        let (free, risky): (Vec<usize>, Vec<usize>) = told.iter().partition(|i| is_free(i));
        for (lead, of) in [
            (YES, &free),
            (if free.is_empty() { ONLY_WHERE } else { WHERE }, &risky),
        ] {
            if !of.is_empty() {
                let of: Vec<String> = of.iter().map(words).collect();
                parts.push(format!("{lead}{}", of.join("; ")));
            }
        }
    }
    let more = shown.len();
    if more > 0 {
        parts.push(format!("{more} more in the table"));
    }
    parts.extend(own_loss(rows));
    match proof {
        Proof::NotCut(why) => {
            let why = why.lines().next().unwrap_or_default();
            parts.push(format!("what a power cut takes was not tested: {why}"));
        }
        Proof::Cut(report) if report.invalid.is_some() => {
            parts.push(
                "INVALID RUN of the crash lab: nothing can be concluded of a loss".to_owned(),
            );
        }
        Proof::Cut(_) => {}
    }
    printable(&parts.join("; "))
}

/// Those that the sentence has room for are taken; the most that can be had, at the end, is always among them.
fn told(shown: &mut Vec<usize>) -> impl Iterator<Item = usize> + use<> {
    let mut told = std::mem::take(shown);
    let more = told.len().saturating_sub(MOST);
    if more > 0 {
        let last = told.len() - 1;
        *shown = told.drain(last - more..last).collect();
    }
    told.into_iter()
}

/// Whether it risks no more than the program itself: by its class, or by what cuts took.
fn is_free(rows: &[Row], index: usize, report: Option<&CrashReport>) -> bool {
    let row = &rows[index];
    let loss = |row: &Row| Some((row.manner?, row.oldest_ns()));
    match (report, loss(row)) {
        (Some(_), Some(lost)) => !row.breaks_class && rows.first().and_then(loss) >= Some(lost),
        _ => !row.gain.variant.risks_data(),
    }
}

/// Candidates with a proven gain, in their order.
fn gaining(comparison: &Comparison, rows: &[Row]) -> Vec<usize> {
    let gains = |i: &usize| gain(comparison, &rows[*i]).is_some();
    (0..rows.len()).filter(gains).collect()
}

fn gain<'a>(comparison: &'a Comparison, row: &Row<'a>) -> Option<&'a EffectRecord> {
    match standing(comparison, &row.gain) {
        Standing::Gains { effect, .. } if row.gain.variant.role == Role::Candidate => Some(effect),
        _ => None,
    }
}

fn nothing(comparison: &Comparison, rows: &[Row]) -> String {
    let candidates = rows
        .iter()
        .filter(|row| row.gain.variant.role == Role::Candidate);
    let all: Vec<(&Row, Standing)> = candidates
        .map(|row| (row, standing(comparison, &row.gain)))
        .collect();
    let is_open =
        |standing: &Standing| matches!(standing, Standing::Open | Standing::Unconfirmed(_));
    let open = all.iter().filter(|(_, standing)| is_open(standing));
    let open: Vec<String> = open
        .map(|(row, _)| format!("`{}`", row.gain.name))
        .collect();
    match open.as_slice() {
        [] if rows.iter().all(|row| effect(row).is_none()) => {
            format!("{NOT_YET}no gain is proven: too few runs for a verdict")
        }
        [] => NO_GAIN.to_owned(),
        open => format!(
            "{NOT_YET}no gain is proven: inconclusive for {}",
            open.join(", ")
        ),
    }
}

fn takes_alone(row: &Row) -> String {
    format!("`{}` {}", row.gain.name, takes(row))
}

fn part(comparison: &Comparison, row: &Row, report: Option<&CrashReport>) -> String {
    let Some(effect) = gain(comparison, row) else {
        return takes_alone(row);
    };
    let name = &row.gain.name;
    let measure = comparison.experiment.main_metric().measure;
    let change = format::percent(effect.change);
    let costs = costs(comparison, &row.gain);
    let gives = |details: &str| format!("`{name}` {}{costs}", gives(effect, measure, details));
    match (report, &row.loss) {
        (Some(_), Some(loss)) => {
            let judged = crash::judged(loss, row.breaks_class);
            format!("{} and {}{judged}", gives(&change), takes(row))
        }
        (Some(_), None) if !row.gain.variant.risks_data() => {
            gives(&format!("{change}; {}, not cut", row.gain.class))
        }
        (Some(_), None) => gives(&format!("{change}; not cut")),
        (None, _) => gives(&format!("{change}, {}", row.gain.class)),
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
