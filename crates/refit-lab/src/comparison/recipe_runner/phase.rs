//! What a phase of a run comes to.

use std::path::Path;
use std::time::Duration;

use refit_run::{End, Ended, tree::PROC};

use crate::error::LabError;

/// Why a run does not count, and whether that is final for its variant.
pub struct Failure {
    pub reason: String,
    pub at_once: bool,
}

/// What one phase comes to: its value, a run that does not count, or an error
/// that ends the comparison.
pub type Phase<T> = Result<Result<T, Failure>, LabError>;

macro_rules! passed {
    ($phase:expr) => {
        match $phase? {
            Ok(value) => value,
            Err(failure) => return Ok(Err(failure)),
        }
    };
}
pub(super) use passed;

/// The run does not count; three of them, and its variant is out.
pub fn failed<T>(reason: impl Into<String>) -> Phase<T> {
    Ok(Err(Failure {
        reason: reason.into(),
        at_once: false,
    }))
}

/// Its variant is out.
pub fn out<T>(reason: impl Into<String>) -> Phase<T> {
    Ok(Err(Failure {
        reason: reason.into(),
        at_once: true,
    }))
}

/// How a program ended, for a message.
pub fn described(ended: &Ended) -> String {
    match ended.end {
        End::Exited(code) => format!("exit code {code}"),
        End::Signaled(signal) => format!("signal {signal}"),
    }
}

/// As a recipe may have written it, for a message.
pub fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// Some processes, for a message.
pub fn names(pids: &[u32]) -> String {
    let name = |pid: &u32| refit_run::process_name(Path::new(PROC), *pid).unwrap_or_default();
    let named = pids
        .iter()
        .take(5)
        .map(|pid| format!("{} (pid {pid})", name(pid)));
    named.collect::<Vec<_>>().join(", ")
}
