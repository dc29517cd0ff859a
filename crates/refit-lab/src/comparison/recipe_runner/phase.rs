//! What a phase of a run comes to.

use refit_recipe::{ConfError, InstanceError};

use crate::comparison::runner::Blame;
use crate::error::LabError;

/// Why a run does not count.
pub struct Failure {
    pub reason: String,
    pub blame: Blame,
}

/// Why a run did not come to its end.
pub enum RunError {
    /// It does not count.
    Failed(Failure),
    /// The whole comparison ends.
    Lab(LabError),
}

/// What one phase comes to.
pub type Phase<T> = Result<T, RunError>;

impl From<LabError> for RunError {
    fn from(error: LabError) -> RunError {
        RunError::Lab(error)
    }
}

impl From<ConfError> for RunError {
    fn from(error: ConfError) -> RunError {
        RunError::Lab(error.into())
    }
}

impl From<InstanceError> for RunError {
    fn from(error: InstanceError) -> RunError {
        if error.is_refits_own() {
            return RunError::Lab(error.into());
        }
        RunError::Failed(Failure {
            reason: error.to_string(),
            // Another start would take as long again.
            blame: match error {
                InstanceError::NotReady { .. } => Blame::VariantAtOnce,
                _ => Blame::Variant,
            },
        })
    }
}

/// The run does not count; three of them, and its variant is out.
pub fn failed<T>(reason: impl Into<String>) -> Phase<T> {
    blamed(reason.into(), Blame::Variant)
}

/// Its variant is out.
pub fn out<T>(reason: impl Into<String>) -> Phase<T> {
    blamed(reason.into(), Blame::VariantAtOnce)
}

/// The run does not count, and no variant is to blame.
pub fn void<T>(reason: impl Into<String>) -> Phase<T> {
    blamed(reason.into(), Blame::Nobody)
}

fn blamed<T>(reason: String, blame: Blame) -> Phase<T> {
    Err(RunError::Failed(Failure { reason, blame }))
}
