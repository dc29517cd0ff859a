//! What stands beneath a table: everything that a reader needs in order to
//! believe it, or not to.

mod allocators;
mod conduct;
mod ddl;
mod memory;
mod note;
mod open_loop;
mod verdicts;
mod waits;
mod witness;

use refit_lab::experiment::Experiment;
use refit_lab::{Comparison, Warning};

use crate::answers::is_exact;
use crate::format;
use crate::paint::Tone;
use crate::row::rows;

pub use conduct::summary;
pub use note::{Note, note, warnings_apart};
pub use verdicts::worsened;
pub use witness::uncounted;

use conduct::{failed, gates, interrupted, left_out, slot_effect};
use verdicts::{
    confirmed, disqualified, in_part, inconclusive, ranges, secondary, unavailable, weight,
};
use waits::waiting;

/// All notes in their order; [`warnings_apart`] has the warnings, which stand before the numbers.
pub fn notes(comparison: &Comparison) -> Vec<Note> {
    let rows = rows(comparison);
    let mut notes = ddl::ddl(comparison);
    if !is_exact(&comparison.experiment) {
        notes.extend(waiting(&comparison.experiment));
    }
    for row in &rows {
        notes.extend(secondary(comparison, row));
    }
    notes.extend(allocators::allocators(comparison));
    notes.extend(memory::memory(&comparison.experiment));
    notes.extend(unavailable(&comparison.experiment));
    notes.extend(ranges(comparison));
    for row in &rows {
        notes.extend(disqualified(row));
        notes.extend(in_part(row));
        notes.extend(inconclusive(&comparison.experiment, row));
    }
    let weights = rows
        .iter()
        .filter_map(|row| weight(&comparison.experiment, row));
    notes.extend(weights);
    notes.extend(open_loop::open_loop(&comparison.experiment));
    notes.push(note("", Tone::Plain, summary(comparison)));
    notes.extend(witness::witness(&comparison.experiment));
    notes.extend(fewer_durable(&comparison.experiment));
    notes.extend(failed(&comparison.experiment));
    notes.extend(interrupted(&comparison.experiment));
    notes.extend(left_out(&comparison.experiment));
    notes.extend(slot_effect(comparison));
    notes.extend(gates(comparison));
    if let Some(confirmation) = &comparison.confirmation {
        notes.extend(confirmed(confirmation));
        let warnings = confirmation.warnings.iter();
        notes.extend(
            warnings
                .filter(|w| !comparison.warnings.contains(w))
                .map(warning),
        );
    }
    notes.extend(comparison.warnings.iter().map(warning));
    notes
}

/// Each candidate's class, where a table has no column for it.
pub fn classes(comparison: &Comparison) -> Option<Note> {
    let rows = rows(comparison);
    let mut parts: Vec<(&str, String)> = Vec::new();
    for row in rows.iter().filter(|row| !row.class.is_empty()) {
        match parts.iter_mut().find(|(class, _)| *class == row.class) {
            Some((_, names)) => *names = format!("{names}, {}", row.name),
            None => parts.push((&row.class, row.name.clone())),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(class, names)| format!("{class}: {names}"))
        .collect();
    (!parts.is_empty()).then(|| note("class", Tone::Plain, parts.join("; ")))
}

/// Variants that made fewer durable calls than the baseline for the same work.
fn fewer_durable(experiment: &Experiment) -> Vec<Note> {
    let unit = experiment.recipe.as_ref().map_or("run", |one| &*one.unit);
    let seen = experiment
        .candidates()
        .filter_map(|(_, variant)| Some((variant, variant.fewer_durable?)));
    // Who takes syncs away declares it.
    let undeclared = seen.filter(|(one, _)| {
        !one.settings
            .iter()
            .any(|setting| setting.class.risks_data())
    });
    let told = undeclared.map(|(variant, calls)| {
        let text = format!(
            "{} makes at most {} durable calls per {unit}, the baseline at least {}: it counts as loses-on-crash, \
             unless cuts show that it loses nothing",
            variant.name,
            format::per_operation(calls.variant),
            format::per_operation(calls.baseline)
        );
        note("fewer syncs:", Tone::Unsure, text)
    });
    told.collect()
}

/// The settings under every variant.
pub fn with(experiment: &Experiment) -> Option<Note> {
    let parts: Vec<String> = experiment
        .with
        .iter()
        .map(|with| format!("{} ({})", with.setting, with.class))
        .collect();
    (!parts.is_empty()).then(|| {
        note(
            "with",
            Tone::Plain,
            format!("{} under every variant", parts.join(" ")),
        )
    })
}

fn warning(warning: &Warning) -> Note {
    let text = format!("{}; {}", warning.text, warning.action);
    note("warning:", Tone::Unsure, text)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::sample;

    pub fn texts(comparison: &Comparison) -> Vec<String> {
        let line = |note: Note| {
            format!("{} {}", note.label, note.text)
                .trim_start()
                .to_owned()
        };
        notes(comparison).into_iter().map(line).collect()
    }

    pub fn has(comparison: &Comparison, line: &str) {
        let lines = texts(comparison);
        assert!(
            lines.iter().any(|l| l == line),
            "{line}\nis not in\n{}",
            lines.join("\n")
        );
    }

    #[test]
    fn warnings_come_last_and_those_of_the_confirmation_too() {
        let mut comparison = sample::experiment();
        let mut again = sample::confirmation();
        again.warnings = comparison.warnings.clone();
        again.warnings.push(Warning {
            text: "the governor changed".to_owned(),
            action: "repeat it".to_owned(),
        });
        comparison.confirmation = Some(Box::new(again));
        let lines = texts(&comparison);
        assert_eq!(
            lines[lines.len() - 2..],
            [
                "warning: the governor changed; repeat it",
                "warning: the load of the machine went from 0.3 to 4.1; repeat it when nothing else runs",
            ]
        );
    }

    #[test]
    fn classes_are_grouped_and_settings_of_all_are_named() {
        let comparison = sample::experiment();
        assert_eq!(
            classes(&comparison).unwrap().text,
            "loses-on-crash: sync=off; safe: malloc=jemalloc, thp=never"
        );
        assert_eq!(
            with(&comparison.experiment).unwrap().text,
            "disk=8ms (changes-behaviour) under every variant"
        );
    }
}
