//! What a comparison is of.

use refit_lab::experiment::{Experiment, VariantRecord};

use crate::format;

/// The command's words, or the recipe's name.
pub fn subject(experiment: &Experiment) -> String {
    match &experiment.recipe {
        Some(recipe) => recipe.name.clone(),
        None => format::command_line(&experiment.command),
    }
}

/// What a recipe is to answer.
pub fn question(experiment: &Experiment) -> Option<String> {
    let question = &experiment.recipe.as_ref()?.question;
    Some(question.clone()).filter(|question| !question.is_empty())
}

/// Both, on one line.
pub fn title(experiment: &Experiment) -> String {
    match question(experiment) {
        Some(question) => format!("{}: {question}", subject(experiment)),
        None => subject(experiment),
    }
}

/// Why a recipe's variant is worth trying.
pub fn why(experiment: &Experiment, variant: &VariantRecord) -> Option<String> {
    let why = experiment.recipe.as_ref()?.why.get(&variant.name)?;
    Some(why.clone()).filter(|why| !why.is_empty())
}

/// The same of every variant that has a reason, with its name.
pub fn reasons(experiment: &Experiment) -> Vec<(String, String)> {
    let variants = experiment.variants.iter();
    variants
        .filter_map(|variant| Some((variant.name.clone(), why(experiment, variant)?)))
        .collect()
}
