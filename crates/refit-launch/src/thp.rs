//! Transparent huge pages of one process tree.
//!
//! prctl can only take away: `never` works everywhere; `madvise` needs a system
//! that says `always` and a kernel that knows the exception; `always` cannot be
//! granted to a process.

use refit_knobs::Thp;

use crate::LaunchError;
use crate::sys::thp as sys;

/// The system's mode, as /sys/kernel/mm/transparent_hugepage/enabled marks it.
#[must_use]
pub fn system_mode() -> Option<String> {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(mode, _)| mode.to_owned())
}

/// What the child has to do to itself before its exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThpAction {
    /// No huge pages.
    Disable,
    /// Only where the program advised them.
    DisableExceptAdvised,
}

/// # Errors
/// [`LaunchError::Thp`] with the reason, where this system cannot grant it.
pub fn action(wanted: Option<Thp>) -> Result<Option<ThpAction>, LaunchError> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    let action = allowed(wanted)?;
    let Some(action) = action else {
        return Ok(None);
    };
    match sys::try_disable(action == ThpAction::DisableExceptAdvised) {
        Ok(()) => Ok(Some(action)),
        Err(error) => Err(LaunchError::Thp(format!(
            "thp={}: this kernel refuses it (prctl: {error})\n  leave it out; thp=never works since Linux 3.15",
            name(wanted)
        ))),
    }
}

fn name(wanted: Thp) -> &'static str {
    match wanted {
        Thp::Never => "never",
        Thp::Madvise => "madvise",
        Thp::Always => "always",
    }
}

/// What the system's mode leaves to be done.
fn allowed(wanted: Thp) -> Result<Option<ThpAction>, LaunchError> {
    let mode = system_mode().unwrap_or_else(|| "never".to_owned());
    match (wanted, mode.as_str()) {
        (Thp::Never, _) => Ok(Some(ThpAction::Disable)),
        (Thp::Madvise, "madvise") | (Thp::Always, "always") => Ok(None),
        (Thp::Madvise, "always") => Ok(Some(ThpAction::DisableExceptAdvised)),
        (Thp::Madvise, _) => Err(refuse(wanted, &mode)),
        (Thp::Always, _) => Err(refuse(wanted, &mode)),
    }
}

fn refuse(wanted: Thp, mode: &str) -> LaunchError {
    LaunchError::Thp(format!(
        "thp={}: this system's mode is `{mode}`, and a process can only be given less than that\n  \
         for the heap alone: malloc=glibc:hugetlb=1, or the allocator's own option",
        name(wanted)
    ))
}
