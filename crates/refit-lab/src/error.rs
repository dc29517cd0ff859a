use std::io;
use std::path::PathBuf;

use refit_run::LaunchError;

use crate::gate::GateError;
use crate::request::{Request, Subject};
use refit_recipe::{ConfError, InstanceError};

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A variant could not be prepared.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A `conf.` setting that the recipe does not have, or that cannot be done.
    #[error(transparent)]
    Conf(#[from] ConfError),
    /// An instance of a recipe could not be made, or refit lost control of one.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// A gate on a metric that the runs do not have.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// Something that a recipe needs is not there.
    #[error("{0}")]
    Missing(String),
    /// What ended a comparison of a tuning before its end.
    #[error("{0}")]
    Ended(String),
    /// There is no room for the instances.
    #[error(
        "the instances of all runs need about {needed_mib} MiB, and {free_mib} MiB are free in {}\n  they are kept until the end; give fewer rounds (--rounds N) or another disk (--dir DIR)", place.display()
    )]
    NoRoomForInstances {
        /// For all runs.
        needed_mib: u64,
        /// On that disk.
        free_mib: u64,
        /// Where.
        place: PathBuf,
    },
    /// A service that all runs load cannot be started again with something else beneath it.
    #[error(
        "{variant}: the recipe keeps one server for all runs, and only a conf.NAME=VALUE can be changed while it runs\n  {remedy}"
    )]
    LongLived {
        /// The variant's settings, as typed.
        variant: String,
        /// What to type next.
        remedy: &'static str,
    },
    /// The program could not be exec'ed.
    #[error("cannot run {command}: {cause}")]
    Start {
        /// Its first word.
        command: String,
        /// The error of the system call.
        cause: io::Error,
    },
    /// A file, a copy or a hook failed.
    #[error("{action}: {cause}")]
    Io {
        /// What refit was doing.
        action: String,
        /// The error of the system call.
        cause: io::Error,
    },
    /// The baseline fails.
    #[error("the baseline failed: {reason}\n  {remedy}")]
    Baseline {
        /// What happened.
        reason: String,
        /// What to type next.
        remedy: String,
    },
    /// There is no room for the copies.
    #[error(
        "--fresh-copy needs about {needed_mib} MiB for all runs, and {free_mib} MiB are free\n  copies are kept until the end; give fewer rounds: --rounds N"
    )]
    NoRoom {
        /// For all runs.
        needed_mib: u64,
        /// On that disk.
        free_mib: u64,
    },
}

impl LabError {
    /// The baseline fails, of this request.
    pub(crate) fn baseline(reason: &str, request: &Request) -> LabError {
        LabError::Baseline {
            reason: reason.to_owned(),
            remedy: match &request.subject {
                Subject::Command(_) => {
                    "a comparison needs a command that succeeds by itself: refit run -- COMMAND"
                        .to_owned()
                }
                Subject::Recipe(subject) => format!(
                    "a comparison needs a service that works by itself: refit recipes check {}",
                    subject.recipe.typed()
                ),
                Subject::Replicas(_) => {
                    "a comparison needs replicas and a load that work by themselves".to_owned()
                }
            },
        }
    }
}
