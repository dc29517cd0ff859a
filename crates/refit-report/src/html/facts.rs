//! What it takes to make the comparison again, and to doubt it.

use std::collections::{BTreeMap, BTreeSet};

use refit_lab::Comparison;
use refit_lab::experiment::{Experiment, Role};

use super::markup::Html;
use super::syncs::titles;
use super::{scrolled, section};
use crate::format;

/// The commands, to be copied.
pub fn repeat(main: &mut Html, experiment: &Comparison) {
    section(main, "To repeat it", |section| {
        scrolled(section, "commands", |section| {
            section.element("pre", &[], |pre| {
                let line = format::command_line(&compare(experiment));
                pre.element("code", &[], |code| code.prose(&line));
            });
        });
        let text = match &experiment.recipe {
            Some(_) => {
                "The seed fixes the order of the runs, not their times: on another day or machine the numbers differ."
            }
            None => {
                "The seed fixes the order of the runs, not their times. How the command was prepared and \
                     checked (--prepare, --check, --fresh-copy …) is not in the result: add it."
            }
        };
        section.element("p", &[("class", "small")], |p| p.prose(text));
    });
}

/// As it would be typed.
fn compare(experiment: &Comparison) -> Vec<String> {
    let mut words: Vec<String> = ["refit", "compare"].map(str::to_owned).into();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    for with in &experiment.with {
        option("--with", with.setting.to_string());
    }
    let gates = experiment.gates.iter().map(|gate| gate.gate.to_string());
    let gates: BTreeSet<String> = gates.collect();
    for gate in gates {
        option("--gate", gate);
    }
    option(
        "--delta",
        format::magnitude(experiment.delta).replace(' ', ""),
    );
    option("--budget", time(experiment.plan.budget_s));
    option("--seed", format::seed(experiment.seed));
    option("--json", "result.json".to_owned());
    option("--html", "result.html".to_owned());
    let has = |role: Role| {
        experiment
            .variants
            .iter()
            .any(|variant| variant.role == role)
    };
    if has(Role::Bare) {
        words.push("--bare".to_owned());
    }
    if experiment.confirmation.is_some() {
        words.push("--confirm".to_owned());
    }
    if let Some(recipe) = &experiment.recipe {
        words.push(recipe.folder.as_ref().unwrap_or(&recipe.name).clone());
    }
    let candidates = experiment.variants.iter();
    let candidates = candidates.filter(|variant| variant.role == Role::Candidate);
    words.extend(candidates.map(|variant| variant.name.clone()));
    if experiment.recipe.is_none() {
        words.push("--".to_owned());
        words.extend(experiment.command.iter().cloned());
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
pub fn failures(main: &mut Html, experiment: &Comparison) {
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
pub fn environment(main: &mut Html, experiment: &Experiment) {
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
        scrolled(section, "the machine", |section| {
            section.element("table", &[("class", "data facts")], |table| {
                table.element("tbody", &[], |body| {
                    for (name, value) in &environment.fixed {
                        body.element("tr", &[], |tr| {
                            tr.leaf("th", &[("scope", "row")], name);
                            tr.leaf("td", &[("colspan", "2")], value);
                        });
                    }
                });
            });
            if !moving.is_empty() {
                section.element("table", &[("class", "data facts")], |table| {
                    titles(table, &["", "before", "after"], &[]);
                    table.element("tbody", &[], |body| {
                        for name in moving {
                            body.element("tr", &[], |tr| {
                                tr.leaf("th", &[("scope", "row")], name);
                                for at in [&environment.before, &environment.after] {
                                    tr.leaf(
                                        "td",
                                        &[],
                                        at.get(name).map_or("unknown", String::as_str),
                                    );
                                }
                            });
                        }
                    });
                });
            }
        });
    });
}
