//! Why there is no recipe, and why an instance of one failed.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::conf::ConfError;

/// Why there is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// No recipe has that name.
    #[error("there is no recipe `{name}`{near}\n  there are {known}; a folder of your own: ./NAME")]
    Unknown {
        /// The name, as typed.
        name: String,
        /// All that refit carries.
        known: String,
        /// `, did you mean …?`, or nothing.
        near: String,
    },
    /// It has no `[promise]`.
    #[error(
        "the recipe {name} has no [promise]: it does not say what its program acknowledges\n  these have one: {known}; docs/recipes.md describes how to write one"
    )]
    NoPromise {
        /// The recipe.
        name: String,
        /// Shipped recipes with a promise.
        known: String,
    },
    /// A folder without the file.
    #[error("{} holds no recipe.toml\n  docs/recipes.md describes it; `refit recipes copy NAME` gives one to start from", path.display())]
    NoFile {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// The kernel's error.
        cause: std::io::Error,
    },
    /// More than a recipe can be.
    #[error("{} is too large for a recipe, or holds something other than files and directories ({})\n  a recipe has up to 500 files and 16 MiB", path.display(), at.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// Where it became too large.
        at: PathBuf,
    },
    /// Text that is not a valid recipe, with its line.
    #[error("{file}: {message}")]
    Syntax {
        /// recipe.toml.
        file: String,
        /// The parser's message, with the line.
        message: String,
    },
    /// A key that contradicts itself or another.
    #[error("{file}: {key}: {problem}")]
    Key {
        /// recipe.toml.
        file: String,
        /// As `load.metrics.p99`.
        key: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}

/// Why an instance did not do what its recipe describes.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// A file, a directory or a process of refit's own could not be had.
    #[error("{action}: {cause}")]
    Io {
        /// What was being done.
        action: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A `conf.` setting that the recipe does not have, or that cannot be applied.
    #[error(transparent)]
    Conf(#[from] ConfError),
    /// The program could not be exec'ed.
    #[error("cannot run {command}: {cause}")]
    Start {
        /// Its words.
        command: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A person asked for the end at once.
    #[error("interrupted")]
    Interrupted,
    /// A hook, or a command of a `conf.` setting, did not succeed.
    #[error("{key} failed, {status}{output}")]
    HookFailed {
        /// Its key in recipe.toml, or the setting.
        key: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines that it printed, as `: …`.
        output: String,
    },
    /// A hook took too long, and was killed.
    #[error("{key} did not end within {} s{output}", timeout.as_secs_f64())]
    HookTimeout {
        /// Its key in recipe.toml, or the setting.
        key: String,
        /// The longest that it may take.
        timeout: Duration,
        /// The last lines that it printed.
        output: String,
    },
    /// The service ended while a hook ran.
    #[error("the service ended during {key}{end}{output}")]
    ServiceEnded {
        /// The hook's key.
        key: String,
        /// How, as `, exit code 1`.
        end: String,
        /// The last lines that the service printed.
        output: String,
    },
    /// The service ended and was never ready.
    #[error("the service ended with {end} before it was ready{output}")]
    EndedBeforeReady {
        /// How, as `exit code 1`.
        end: String,
        /// The last lines that the service printed.
        output: String,
    },
    /// The service was not ready in time.
    #[error("the service was not ready within {} s ({missing}){output}", timeout.as_secs_f64())]
    NotReady {
        /// The longest that it may take.
        timeout: Duration,
        /// What was waited for.
        missing: String,
        /// The last lines that the service printed.
        output: String,
    },
    /// The service, or processes that it started, did not end when they were asked to.
    #[error("the service {what} within {} s of service.stop, and was killed: {names}{output}", timeout.as_secs_f64())]
    NotStopped {
        /// `did not end` or `left processes behind`.
        what: &'static str,
        /// The longest that the end may take.
        timeout: Duration,
        /// The processes.
        names: String,
        /// The last lines that the service printed.
        output: String,
    },
    /// Processes that hooks started were still there at the end.
    #[error("these outlived the run, and were killed: {names}")]
    Outlived {
        /// The processes.
        names: String,
    },
}

impl InstanceError {
    /// For `map_err`: an [`InstanceError::Io`] that names what was being done.
    pub fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> InstanceError {
        let action = action.into();
        move |cause| InstanceError::Io { action, cause }
    }

    /// Whether refit or the machine failed, and not what the recipe runs.
    #[must_use]
    pub fn is_refits_own(&self) -> bool {
        matches!(
            self,
            InstanceError::Io { .. } | InstanceError::Conf(_) | InstanceError::Start { .. }
        )
    }
}
