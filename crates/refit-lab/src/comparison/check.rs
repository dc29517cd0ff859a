//! Whether a recipe works here: each variant once, with as little work as it allows.

use std::time::{Duration, Instant};

use refit_run::{count_interruptions, interruptions};

use super::recipe_runner::RecipeRunner;
use super::runner::Runs;
use crate::error::LabError;
use crate::request::{Request, Subject};
use crate::variants::Variants;

/// The result of one variant.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Its name.
    pub variant: String,
    /// What the check printed, or why the run does not count.
    pub outcome: Result<String, String>,
    /// Metrics of the load, by name.
    pub values: Vec<(String, f64)>,
    /// From the setup to the end.
    pub took: Duration,
}

/// Runs the baseline and each candidate once; an edit of the configuration is
/// also reverted and compared byte for byte. `told` is called with each result as it
/// comes. Returns whether all of them passed.
///
/// # Errors
/// [`LabError`]: what is missing here.
pub fn check(request: &Request, told: &mut dyn FnMut(&Checked)) -> Result<bool, LabError> {
    count_interruptions();
    let Subject::Recipe(subject) = &request.subject else {
        return Ok(true);
    };
    if let Some(missing) = subject.recipe.missing("recipes check") {
        return Err(LabError::Missing(missing));
    }
    let variants = Variants::tried(request);
    let mut runner = RecipeRunner::new(
        request,
        subject,
        &variants.settings,
        &variants.records,
        true,
    )?;
    let mut all_passed = true;
    for (variant, record) in variants.records.iter().enumerate() {
        if interruptions() > 0 {
            return Ok(false);
        }
        let began = Instant::now();
        let made = runner.run(variant)?;
        let load = made.load.as_ref();
        let checked = Checked {
            variant: record.name.clone(),
            outcome: match made.failure {
                Some(reason) => Err(reason),
                None => Ok(load.map(|load| load.outcome.clone()).unwrap_or_default()),
            },
            values: load
                .map(|load| load.values.clone().into_iter().collect())
                .unwrap_or_default(),
            took: began.elapsed(),
        };
        all_passed &= checked.outcome.is_ok();
        told(&checked);
    }
    if let Some(trouble) = runner.end()? {
        all_passed = false;
        told(&Checked {
            variant: "the end of the service".to_owned(),
            outcome: Err(trouble),
            values: Vec::new(),
            took: Duration::ZERO,
        });
    }
    Ok(all_passed)
}
