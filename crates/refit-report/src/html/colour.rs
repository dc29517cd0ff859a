//! A variant's colour, by day and by night.

use refit_lab::experiment::{Experiment, Role};

use crate::palette::{AT_NIGHT, COLOURS};

/// The class that gives an element its variant's colour, as `--c`.
pub fn class(experiment: &Experiment, variant: usize) -> String {
    match experiment.variants.get(variant).map(|variant| variant.role) {
        Some(Role::Candidate) => format!("v{}", variant.saturating_sub(1) % COLOURS.len()),
        Some(Role::Hidden) => "hidden-base".to_owned(),
        Some(Role::Bare) => "bare".to_owned(),
        _ => "base".to_owned(),
    }
}

/// The style sheet of all colours and axes.
pub fn rules() -> String {
    let rules = |colours: [&str; COLOURS.len()]| -> String {
        let rule = |(i, colour)| format!(".v{i} {{ --c: {colour}; }}\n");
        colours.into_iter().enumerate().map(rule).collect()
    };
    format!(
        "{}{}@media screen and (prefers-color-scheme: dark) {{\n{}}}\n",
        include_str!("common.css"),
        rules(COLOURS),
        rules(AT_NIGHT)
    )
}
