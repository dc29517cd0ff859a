//! What a reader has to know before trusting a table.

use refit_run::{InEffect, grouped};
use serde::{Deserialize, Serialize};

use crate::effects::Effects;
use crate::experiment::{Experiment, Role, RunRecord};

/// Something that a reader has to know.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// What was seen.
    pub text: String,
    /// What to do about it.
    pub action: String,
}

/// Shows what a setting could be about.
const SEE_THE_COMMAND: &str = "see what the command does: refit run -- COMMAND";

/// A noise floor above this gets a warning.
const NOISY: f64 = 0.05;

/// A share of all processors above this, used by other processes, gets a warning.
const LOUD: f64 = 0.1;

/// Everything that the runs and their effects show. `others` is the share of all
/// processors that other processes used meanwhile.
pub fn warnings(experiment: &Experiment, effects: &Effects, others: f64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let is_exact = experiment.is_exact();
    // A recipe makes its state anew for each run, and its check tells whether the work was done.
    if !is_exact && experiment.recipe.is_none() {
        warnings.extend(less_work_later(experiment));
    }
    if let Some(floor) = effects.noise_floor(experiment) {
        warnings.extend(noisy(floor));
        small_effects(experiment, effects, floor, &mut warnings);
    }
    changed_machine(experiment, &mut warnings);
    // A busy machine changes no exact answer.
    if !is_exact && others > LOUD {
        // Two clocks of the kernel's: their ratio may be more than all.
        let busy = match others {
            all if all > 0.995 => "kept the machine's processors busy".to_owned(),
            share => format!("used {:.0} % of the machine's processors", share * 100.0),
        };
        warnings.push(warning(
            format!("other processes, the kernel's own threads included, {busy}"),
            "repeat it when nothing else runs",
        ));
    }
    warnings.extend(unreached(experiment));
    warnings.extend(with_nowhere(experiment));
    path_unknown(experiment, &mut warnings);
    warnings
}

fn warning(text: String, action: &str) -> Warning {
    Warning {
        text,
        action: action.to_owned(),
    }
}

fn noisy(floor: f64) -> Option<Warning> {
    (floor > NOISY).then(|| {
        warning(
            format!(
                "the noise floor is {:.1} %: two equal variants differed by that much",
                floor * 100.0
            ),
            "wait for a quieter machine, or give it more time: --budget",
        )
    })
}

/// A verdict on a difference that two equal variants showed as well.
fn small_effects(
    experiment: &Experiment,
    effects: &Effects,
    floor: f64,
    warnings: &mut Vec<Warning>,
) {
    let of_main = effects.iter().filter(|e| e.metric == experiment.main);
    for effect in of_main {
        if effects.is_within_noise(experiment, effect) {
            warnings.push(warning(
                format!(
                    "{} differs by less than the noise floor of {:.1} %",
                    experiment.variants[effect.variant].name,
                    floor * 100.0
                ),
                "see whether it holds: --remeasure",
            ));
        }
    }
}

fn changed_machine(experiment: &Experiment, warnings: &mut Vec<Warning>) {
    let environment = &experiment.environment;
    for name in ["thp", "governor"] {
        if let (Some(before), Some(after)) =
            (environment.before.get(name), environment.after.get(name))
            && before != after
        {
            warnings.push(warning(
                format!(
                    "the system's {name} changed during the comparison, from {before} to {after}"
                ),
                "repeat it, and find out what changed it",
            ));
        }
    }
}

fn less_work_later(experiment: &Experiment) -> Option<Warning> {
    // Whichever variant came first has done the work for all.
    let (first, later) = experiment.runs.as_slice().split_first()?;
    let same = later.iter().filter(|run| run.variant == first.variant);
    let slowest = same.map(|run| run.run.metrics.wall_ns).max()?;
    (first.run.metrics.wall_ns / 2 > slowest).then(|| {
        warning(
            "the first run took more than twice as long as any later one of its variant: the command may do less work the second time".to_owned(),
            "restore the state before each run: --prepare COMMAND, or --fresh-copy DIR",
        )
    })
}

/// Settings of all variants that were not in effect.
fn with_nowhere(experiment: &Experiment) -> impl Iterator<Item = Warning> {
    experiment.with.iter().filter_map(|with| {
        let Some(InEffect::Nowhere(reason)) = &with.in_effect else {
            return None;
        };
        let text = format!("--with {} is not in effect: {reason}", with.setting);
        Some(warning(text, SEE_THE_COMMAND))
    })
}

/// Calls that a path scope could not be applied to.
fn path_unknown(experiment: &Experiment, warnings: &mut Vec<Warning>) {
    for (index, variant) in experiment.variants.iter().enumerate() {
        let mut runs = experiment.runs.iter().filter(|run| run.variant == index);
        if runs.any(|run| run.run.coverage.path_unknown > 0) {
            warnings.push(warning(
                format!(
                    "{}: some calls were real because their file could not be identified (a chroot, no /proc, or memory that cannot be read)",
                    variant.name
                ),
                "run refit as root: it then intercepts them through seccomp",
            ));
        }
    }
}

fn unreached(experiment: &Experiment) -> Option<Warning> {
    let candidate = |run: &&RunRecord| experiment.variants[run.variant].role == Role::Candidate;
    let run = experiment.runs.iter().filter(candidate).find(|run| {
        let coverage = &run.run.coverage;
        coverage.processes_reached < coverage.processes_seen
    })?;
    let coverage = &run.run.coverage;
    let names: Vec<String> = coverage
        .unreached
        .iter()
        .take(3)
        .map(|program| format!("{} ({})", program.name, program.reason))
        .collect();
    Some(warning(
        format!(
            "{} of {} processes were not reached: {}",
            grouped(coverage.processes_seen - coverage.processes_reached),
            grouped(coverage.processes_seen),
            if names.is_empty() {
                "unknown which".to_owned()
            } else {
                names.join(", ")
            }
        ),
        "what they do is the same in every variant; see refit doctor COMMAND",
    ))
}
