//! Why settings cannot be given to a workload.

use thiserror::Error;

use refit_knobs::Ground;

use super::GROUND;

/// Why there is no patch.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// Not a kind with a pod template.
    #[error(
        "{workload} is none of the kinds that make pods: {known}\n  name one of these: deployment/NAME"
    )]
    Kind {
        /// Kind and name.
        workload: String,
        /// Those that there are.
        known: String,
    },
    /// No such container.
    #[error("{workload} has no container `{container}`; it has {known}")]
    NoContainer {
        /// Kind and name.
        workload: String,
        /// As it was typed.
        container: String,
        /// Those that there are.
        known: String,
    },
    /// A setting that a pod cannot have.
    #[error("`{setting}` cannot be set by a patch of {workload}; possible are {}", Ground::settings(&GROUND))]
    Setting {
        /// In canonical text.
        setting: String,
        /// Kind and name.
        workload: String,
    },
    /// Something of the workload forbids it.
    #[error("container `{container}` of {workload}: {why}")]
    Refused {
        /// Its name.
        container: String,
        /// Kind and name.
        workload: String,
        /// With what to type or to do.
        why: String,
    },
    /// An option is missing.
    #[error("{0}")]
    Missing(&'static str),
    /// Nothing is left to be changed.
    #[error("{0} has all of this already: there is nothing to do")]
    Nothing(String),
}
