//! Transparent huge pages of one process tree.
//!
//! prctl can only take away: `never` works everywhere; `madvise` needs a system
//! that says `always` and a kernel that knows the exception; `always` cannot be
//! granted to a process.

use refit_knobs::Thp;

use crate::LaunchError;

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
    let mode = system_mode().unwrap_or_else(|| "never".to_owned());
    match (wanted, mode.as_str()) {
        (Thp::Never, _) => Ok(Some(ThpAction::Disable)),
        (Thp::Madvise, "madvise") | (Thp::Always, "always") => Ok(None),
        (Thp::Madvise, "always") => Ok(Some(ThpAction::DisableExceptAdvised)),
        (Thp::Madvise, _) => Err(refuse("madvise", &mode)),
        (Thp::Always, _) => Err(refuse("always", &mode)),
    }
}

fn refuse(wanted: &str, mode: &str) -> LaunchError {
    LaunchError::Thp(format!(
        "thp={wanted}: this system's mode is `{mode}`, and a process can only be given less than that\n  \
         for the heap alone: malloc=glibc:hugetlb=1, or the allocator's own option"
    ))
}
