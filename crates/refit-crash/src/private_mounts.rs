//! Mounts of this process's own, from which none leaves it.

use std::io;
use std::sync::OnceLock;

use refit_run::namespaces::{Outside, own_mounts};
use rustix::mount::{MountFlags, mount};

use crate::error::{CrashError, io_error};

/// Where this process was before the first [`enter`].
static OUTSIDE: OnceLock<Outside> = OnceLock::new();

/// From here on mounts are this process's own, and none leaves it; /proc shows
/// the processes of its namespace.
///
/// # Errors
/// What the kernel refused, by name.
pub fn enter() -> Result<(), CrashError> {
    if OUTSIDE.get().is_none() {
        let outside = Outside::here().map_err(io_error("no mount namespace can be left again"))?;
        // No other thread sets it: the process has one.
        let _ = OUTSIDE.set(outside);
    }
    own_mounts().map_err(io_error("no mount namespace can be made"))?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)
        .map_err(|error| io_error("/proc cannot be mounted")(error.into()))
}

/// Leaves the mounts of the crash lab. The process that serves a disk must not be
/// the last to hold the file system on it: when a process ends, the kernel
/// unmounts before it closes the descriptor by which the disk is served
/// (kernel/exit.c: both are task work, the last one first), and the unmount would
/// wait forever for a server that is gone, and with it every sync(2) of the
/// machine.
///
/// # Errors
/// Not root.
pub fn leave() -> io::Result<()> {
    OUTSIDE.get().map_or(Ok(()), Outside::return_to_mounts)
}
