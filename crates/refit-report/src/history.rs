//! The score log of many comparisons: what was tried, what it earned, and
//! whether it was kept.

mod html;
mod kept;

use std::fmt::Write;
use std::path::PathBuf;

use refit_lab::experiment::{Experiment, Role, Setting, VariantRecord};
use refit_lab::{Comparison, EffectRecord};
use refit_stats::OVERALL_ALPHA;

use crate::format;
use crate::row::{Row, rows};
use crate::table::{self, Column};

pub use html::html as history_html;
pub use kept::Kept;

/// One line for each candidate, the oldest first, under each command. A change
/// was *kept* when somebody marked it so ([`Kept`]), or when a later comparison of the same command
/// has its settings under every variant (`--with`); *measured again* when a later one has it as a
/// candidate. Where a winner was confirmed, the confirmed number is given.
#[must_use]
pub fn history(experiments: &[(PathBuf, Comparison)], kept: &Kept) -> String {
    let mut out = String::new();
    for (i, (command, of)) in by_command(experiments).iter().enumerate() {
        let _ = write!(
            out,
            "{}{}\n{}",
            if i > 0 { "\n" } else { "" },
            format::command_line(command),
            log(of, kept)
        );
    }
    out
}

/// A stored comparison, and its file.
type Stored = (PathBuf, Comparison);

/// The comparisons of each command, in the order of their dates.
fn by_command(experiments: &[Stored]) -> Vec<(&[String], Vec<&Stored>)> {
    let mut sorted: Vec<&Stored> = experiments.iter().collect();
    sorted.sort_by_key(|(path, experiment)| (experiment.experiment.started_unix, path));
    let mut commands: Vec<(&[String], Vec<&Stored>)> = Vec::new();
    for stored in sorted {
        let command = stored.1.experiment.command.as_slice();
        match commands.iter_mut().find(|(known, _)| *known == command) {
            Some((_, of)) => of.push(stored),
            None => commands.push((command, vec![stored])),
        }
    }
    commands
}

/// A candidate of one comparison.
struct Entry<'a> {
    record: Option<&'a EffectRecord>,
    gains: bool,
    date: String,
    change: String,
    baseline: String,
    effect: String,
    interval: String,
    verdict: String,
    kept: &'static str,
    file: String,
}

fn entries<'a>(experiments: &[&'a Stored], kept: &Kept) -> Vec<Entry<'a>> {
    let mut entries = Vec::new();
    for (i, (path, experiment)) in experiments.iter().enumerate() {
        let rows = rows(experiment);
        let candidates = rows
            .iter()
            .filter(|row| row.variant.role == Role::Candidate);
        entries.extend(candidates.map(|row| {
            let confirmed = experiment
                .confirmation
                .as_deref()
                .map(crate::row::rows)
                .unwrap_or_default();
            let again = confirmed.iter().find(|again| again.name == row.name);
            let shown: &Row = again.unwrap_or(row);
            Entry {
                record: shown.effect,
                gains: shown.effect.is_some_and(|effect| effect.gain),
                date: format::date(experiment.experiment.started_unix),
                change: row.name.clone(),
                baseline: rows
                    .first()
                    .map_or(String::new(), |baseline| baseline.value.clone()),
                effect: shown.change.clone(),
                interval: shown.interval.clone(),
                verdict: verdict(shown, again.is_some()),
                kept: kept
                    .decision(path, &row.name)
                    .unwrap_or_else(|| fate(row.variant, &experiments[i + 1..])),
                file: path.display().to_string(),
            }
        }));
    }
    entries
}

fn log(experiments: &[&Stored], kept: &Kept) -> String {
    let entries = entries(experiments, kept);
    let level = format!("{} interval", format::magnitude(1.0 - OVERALL_ALPHA));
    let cells = |of: fn(&Entry) -> String| entries.iter().map(of);
    let columns = [
        Column::words("date (UTC)", cells(|entry| entry.date.clone())),
        Column::words("change", cells(|entry| entry.change.clone())),
        Column::numbers("baseline", cells(|entry| entry.baseline.clone())),
        Column::numbers("effect", cells(|entry| entry.effect.clone())),
        Column::numbers(&level, cells(|entry| entry.interval.clone())),
        Column::words("verdict", cells(|entry| entry.verdict.clone())),
        Column::words("kept", cells(|entry| entry.kept.to_owned())),
        Column::words("result", cells(|entry| entry.file.clone())),
    ];
    let columns: Vec<&Column> = columns.iter().collect();
    let mut lines = table::lines(&columns, false);
    lines.push(String::new());
    lines.join("\n")
}

/// A confirmation has the last word.
fn verdict(row: &Row, again: bool) -> String {
    let gains = row.effect.is_some_and(|effect| effect.gain);
    let ending = match (again, gains) {
        (false, _) => "",
        (true, true) => ", confirmed",
        (true, false) => ", not confirmed",
    };
    format!("{}{ending}", row.verdict)
}

fn fate(variant: &VariantRecord, later: &[&Stored]) -> &'static str {
    let has_all = |experiment: &Experiment| {
        let has = |setting: &Setting| experiment.with.iter().any(|with| with.setting == *setting);
        !variant.settings.is_empty() && variant.settings.iter().all(|s| has(&s.setting))
    };
    let is_candidate = |comparison: &Comparison| {
        let mut others = comparison.experiment.variants.iter();
        others.any(|other| other.role == Role::Candidate && other.name == variant.name)
    };
    match later {
        [] => "open",
        _ if later
            .iter()
            .any(|(_, experiment)| has_all(&experiment.experiment)) =>
        {
            "kept"
        }
        _ if later.iter().any(|(_, comparison)| is_candidate(comparison)) => "measured again",
        _ => "not kept",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn what_a_later_comparison_stands_on_was_kept() {
        let first = sample::experiment();
        let mut second = sample::experiment();
        second.experiment.started_unix += 86_400;
        second.experiment.with = first.experiment.variants[1].settings.clone();
        second.experiment.variants.remove(1);
        second.confirmation = None;
        second.effects = (second
            .effects
            .iter()
            .filter(|effect| effect.variant != 1)
            .cloned())
        .collect();
        for effect in second.effects.iter_mut() {
            effect.variant -= 1;
        }
        second.experiment.runs = (second
            .experiment
            .runs
            .iter()
            .filter(|run| run.variant != 1)
            .cloned())
        .collect();
        for run in second.experiment.runs.as_mut_slice().iter_mut() {
            run.variant -= usize::from(run.variant > 1);
        }
        let mut other = sample::experiment();
        other.experiment.command = vec!["make".to_owned(), "test".to_owned()];
        other.experiment.started_unix += 90_000;
        other.confirmation = Some(Box::new(sample::confirmation()));
        let files = [("b.json", second), ("c.json", other), ("a.json", first)];
        let files = files.map(|(path, experiment)| (PathBuf::from(path), experiment));
        sample::golden("history.txt", &history(&files, &Kept::default()));
    }
}
