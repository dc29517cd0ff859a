//! Transparent huge pages of one process tree.
//!
//! prctl can only take away: `never` works everywhere; `madvise` needs a system
//! that says `always` and a kernel that knows the exception; `always` cannot be
//! granted to a process.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use refit_knobs::Thp;

use crate::LaunchError;
use crate::sys::thp as sys;

/// The system's transparent huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemMode {
    /// The mode that /sys/kernel/mm/transparent_hugepage/enabled marks.
    Marked(String),
    /// The kernel has none.
    Absent,
    /// /sys does not say it, as in a chroot without one.
    Unknown,
}

impl SystemMode {
    /// Looks below `sys`, which is /sys.
    fn of(sys: &Path) -> SystemMode {
        let directory = sys.join("kernel/mm");
        let text = fs::read_to_string(directory.join("transparent_hugepage/enabled"));
        let marked = |text: String| {
            let (_, rest) = text.split_once('[')?;
            rest.split_once(']').map(|(mode, _)| mode.to_owned())
        };
        match text {
            Ok(text) => marked(text).map_or(SystemMode::Unknown, SystemMode::Marked),
            // Every kernel has something else there, as ksm or swap.
            Err(error) if error.kind() == ErrorKind::NotFound && directory.is_dir() => {
                SystemMode::Absent
            }
            Err(_) => SystemMode::Unknown,
        }
    }
}

impl Display for SystemMode {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        to.write_str(match self {
            SystemMode::Marked(mode) => mode,
            SystemMode::Absent => "this kernel has none",
            SystemMode::Unknown => "unknown: /sys/kernel/mm cannot be read here",
        })
    }
}

/// The system's mode.
#[must_use]
pub fn system_mode() -> SystemMode {
    SystemMode::of(Path::new("/sys"))
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
    let mode = match system_mode() {
        SystemMode::Marked(mode) => mode,
        SystemMode::Absent => "never".to_owned(),
        SystemMode::Unknown if wanted == Thp::Never => return Ok(Some(ThpAction::Disable)),
        SystemMode::Unknown => {
            return Err(LaunchError::Thp(format!(
                "thp={}: the system's mode, which limits it, is unknown: /sys/kernel/mm cannot be read here\n  \
                 mount -t sysfs sysfs /sys, or leave it out",
                name(wanted)
            )));
        }
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sys_does_not_say_is_unknown() {
        let sys = tempfile::tempdir().unwrap();
        assert_eq!(SystemMode::of(sys.path()), SystemMode::Unknown);
        let directory = sys.path().join("kernel/mm");
        fs::create_dir_all(&directory).unwrap();
        assert_eq!(SystemMode::of(sys.path()), SystemMode::Absent);
        let directory = directory.join("transparent_hugepage");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("enabled"), "always [madvise] never\n").unwrap();
        let marked = SystemMode::Marked("madvise".to_owned());
        assert_eq!(SystemMode::of(sys.path()), marked);
    }
}
