//! What is proven of a variant's main metric, and what has to be typed to see what a power cut takes of it.

use refit_lab::experiment::{Experiment, Role};
use refit_lab::{Comparison, EffectRecord, Verdict};

use crate::format;
use crate::row::{Row, rows};
use crate::title::subject;

/// A longer command stands beneath the sentence, where it can be copied.
const LONGEST_COMMAND: usize = 60;

/// What the runs say of one variant.
#[derive(Clone, Copy, Debug)]
pub enum Standing<'a> {
    /// It is better, by this effect.
    Gains {
        /// A winner was picked for being the best: where it was measured again, that is the number.
        effect: &'a EffectRecord,
        /// It was measured again.
        again: bool,
    },
    /// It seemed better, and measured again that is not proven.
    Unconfirmed(&'a EffectRecord),
    /// A proven difference, and not more than two equal variants differed by.
    WithinNoise,
    /// It is worse.
    Loses,
    /// A difference of more than the least that matters is excluded.
    Same,
    /// More is needed for a verdict.
    Open,
    /// Too few runs for an interval.
    Early,
    /// It was disqualified.
    Out,
}

/// Of a candidate.
pub fn standing<'a>(comparison: &'a Comparison, row: &Row<'a>) -> Standing<'a> {
    if row.variant.disqualified.is_some() {
        return Standing::Out;
    }
    let Some((effect, verdict)) = row.effect.and_then(|e| Some((e, e.verdict?))) else {
        return Standing::Early;
    };
    let is_noise = (comparison.effects).is_within_noise(&comparison.experiment, effect);
    match verdict {
        Verdict::Same => Standing::Same,
        Verdict::Inconclusive => Standing::Open,
        _ if effect.gain => match measured_again(comparison, row) {
            Some(again) if again.gain => Standing::Gains {
                effect: again,
                again: true,
            },
            Some(again) => Standing::Unconfirmed(again),
            None if is_noise => Standing::WithinNoise,
            None => Standing::Gains {
                effect,
                again: false,
            },
        },
        _ if is_noise => Standing::WithinNoise,
        _ => Standing::Loses,
    }
}

/// The effect on the main metric when it was compared once more.
fn measured_again<'a>(comparison: &'a Comparison, row: &Row) -> Option<&'a EffectRecord> {
    let again = comparison.confirmation.as_ref()?;
    let mut variants = again.experiment.variants.iter();
    let at = variants.position(|variant| variant.name == row.name)?;
    again.effects.get(at, &again.experiment.main)
}

/// The rows of candidates, in their order.
pub fn candidates(comparison: &Comparison) -> Vec<Row<'_>> {
    let mut rows = rows(comparison);
    rows.retain(|row| row.variant.role == Role::Candidate);
    rows
}

/// What shows what a power cut takes of these variants; `None` where nothing can.
pub fn to_prove(experiment: &Experiment, variants: &[&str]) -> Option<String> {
    let names = format::command_line(
        &variants
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>(),
    );
    match &experiment.recipe {
        Some(recipe) if !recipe.has_promise => None,
        Some(recipe) => {
            let recipe = recipe.folder.as_ref().unwrap_or(&recipe.name);
            let recipe = format::command_line(std::slice::from_ref(recipe));
            Some(format!("refit compare {recipe} {names} --prove"))
        }
        None => {
            let command = subject(experiment);
            let command = match command.chars().count() {
                0..=LONGEST_COMMAND => &command,
                _ => "COMMAND",
            };
            Some(format!(
                "refit crash {names} --check CHECK --ack SOURCE -- {command}"
            ))
        }
    }
}
