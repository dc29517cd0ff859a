//! What it takes to make the comparison again, and to doubt it.

use std::collections::{BTreeMap, BTreeSet};

use refit_lab::Comparison;
use refit_lab::experiment::{Experiment, Role};

use super::elements::{self, section};
use super::grid;
use crate::format;
use crate::markup::Markup;
use crate::table::Column;

/// The command, to be copied; `proof`: options of power cuts, for a result that did not keep them.
pub fn repeat(main: &mut Markup, comparison: &Comparison, proof: &[String]) {
    let about = match &comparison.experiment.options {
        Some(_) => {
            "The seed fixes the order of the runs, not their times: on another day or machine the numbers differ."
        }
        None => {
            "The seed fixes the order of the runs, not their times. How the command was prepared, checked and \
             reached (--prepare, --check, --fresh-copy, --backend …) is not stored in this result: add these options."
        }
    };
    elements::repeat(main, &compare(comparison, proof), about);
}

/// As it would be typed.
fn compare(comparison: &Comparison, proof: &[String]) -> Vec<String> {
    let mut words: Vec<String> = ["refit", "compare"].map(str::to_owned).into();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    for with in &comparison.experiment.with {
        option("--with", with.setting.to_string());
    }
    let gates = comparison.gates.iter().map(|gate| gate.gate.to_string());
    let gates: BTreeSet<String> = gates.collect();
    for gate in gates {
        option("--gate", gate);
    }
    option(
        "--delta",
        format::margin(comparison.experiment.delta).replace(' ', ""),
    );
    option("--budget", time(comparison.experiment.plan.budget_s));
    option("--seed", format::seed(comparison.experiment.seed));
    option("--json", "result.json".to_owned());
    option("--html", "result.html".to_owned());
    let has = |role: Role| {
        comparison
            .experiment
            .variants
            .iter()
            .any(|variant| variant.role == role)
    };
    if has(Role::Bare) {
        words.push("--bare".to_owned());
    }
    let kept = match (&comparison.experiment.options, &comparison.experiment.input) {
        (Some(options), _) => options.clone(),
        (None, Some(input)) => vec!["--input".to_owned(), input.clone()],
        (None, None) => Vec::new(),
    };
    let is_kept = |option: &str| kept.iter().any(|word| word == option);
    if comparison.confirmation.is_some() && !is_kept("--remeasure") {
        words.push("--remeasure".to_owned());
    }
    if !is_kept("--prove") {
        words.extend(proof.iter().cloned());
    }
    words.extend(kept);
    if let Some(recipe) = &comparison.experiment.recipe {
        if let Some(replicas) = &recipe.replicas {
            let options = ["--on", &replicas.on, "--load", &replicas.load];
            words.extend(options.map(str::to_owned));
        }
        words.push(recipe.folder.as_ref().unwrap_or(&recipe.name).clone());
    }
    let candidates = comparison.experiment.variants.iter();
    let candidates = candidates.filter(|variant| variant.role == Role::Candidate);
    words.extend(candidates.map(|variant| variant.name.clone()));
    if comparison.experiment.recipe.is_none() {
        words.push("--".to_owned());
        words.extend(comparison.experiment.command.iter().cloned());
    }
    words
}

/// As `--budget` takes it.
fn time(seconds: f64) -> String {
    let seconds = seconds.max(1.0).round();
    if seconds % 60.0 == 0.0 {
        format!("{:.0}m", seconds / 60.0)
    } else {
        format!("{seconds:.0}s")
    }
}

/// Runs that do not count, with their reasons.
pub fn failures(main: &mut Markup, experiment: &Experiment) {
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for run in experiment.runs.iter() {
        let variant = experiment.variants.get(run.variant);
        if let (Some(reason), Some(variant)) = (&run.failure, variant) {
            *reasons.entry((&variant.name, reason)).or_default() += 1;
        }
    }
    if reasons.is_empty() {
        return;
    }
    section(main, "Runs that do not count", |section| {
        section.element("ul", &[("class", "notes")], |list| {
            for ((variant, reason), count) in reasons {
                list.element("li", &[], |item| {
                    item.leaf("code", &[], variant);
                    item.text(&format!(" {}: {reason}", format::plural(count, "run")));
                });
            }
        });
    });
}

/// The machine.
pub fn environment(main: &mut Markup, experiment: &Experiment) {
    let environment = &experiment.environment;
    let moving: BTreeSet<&String> = environment
        .before
        .keys()
        .chain(environment.after.keys())
        .collect();
    if environment.fixed.is_empty() && moving.is_empty() {
        return;
    }
    section(main, "The machine", |section| {
        let fixed = environment.fixed.iter();
        let fixed: Vec<(&str, String)> = fixed
            .map(|(name, value)| (&**name, format::fact(value)))
            .collect();
        let rows = fixed.iter().map(|(name, value)| (*name, &**value));
        grid::facts(section, "the machine", rows);
        if !moving.is_empty() {
            let names = || moving.iter().map(|name| (*name).clone());
            let at = |title, values: &BTreeMap<String, String>| {
                let value =
                    |name: String| values.get(&name).map_or("unknown".to_owned(), Clone::clone);
                Column::words(title, names().map(value))
            };
            let columns = [
                Column::words("", names()),
                at("before", &environment.before),
                at("after", &environment.after),
            ];
            grid::grid(section, "its load", "facts", &columns.each_ref());
        }
    });
}
