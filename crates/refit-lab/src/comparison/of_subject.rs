//! Who makes the runs of a subject.

use refit_knobs::Settings;

use super::command_runner::CommandRunner;
use super::recipe_runner::RecipeRunner;
use super::replica_runner::ReplicaRunner;
use super::runner::Runs;
use crate::error::LabError;
use crate::experiment::VariantRecord;
use crate::request::{Request, Subject};

/// What makes the runs of this subject; `settings` of each variant.
///
/// # Errors
/// What is missing here, or excludes another setting.
pub fn runner<'a>(
    request: &'a Request,
    settings: &[Settings],
    variants: &[VariantRecord],
) -> Result<Box<dyn Runs + 'a>, LabError> {
    Ok(match &request.subject {
        Subject::Command(subject) => {
            Box::new(CommandRunner::new(request, subject, settings, variants)?)
        }
        Subject::Recipe(subject) => {
            if let Some(missing) = subject.recipe.missing("compare") {
                return Err(LabError::Missing(missing));
            }
            let brief = false;
            Box::new(RecipeRunner::new(
                request, subject, settings, variants, brief,
            )?)
        }
        Subject::Replicas(replicas) => {
            Box::new(ReplicaRunner::new(replicas.as_ref(), settings.to_vec()))
        }
    })
}
