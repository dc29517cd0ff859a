//! Mounts of this process's own, from which none leaves it.

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use rustix::process::{chdir, chroot, getcwd};

use crate::error::{CrashError, io_error};
use crate::sys::process::own_mounts;

const PROC: &str = "/proc";
const ALL_PRIVATE: MountPropagationFlags =
    MountPropagationFlags::PRIVATE.union(MountPropagationFlags::REC);

/// From here on mounts are this process's own, and none leaves it; /proc shows
/// the processes of its namespace.
///
/// # Errors
/// What the kernel refused, by name.
pub fn enter() -> Result<(), CrashError> {
    own_mounts().map_err(io_error("no mount namespace can be made"))?;
    private_root().map_err(|error| io_error("mounts cannot be made private")(error.into()))?;
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("proc", PROC, "proc", flags, None)
        .map_err(|error| io_error("/proc cannot be mounted")(error.into()))
}

/// Where the root directory is not a mount point, as in a chroot, the mount that it lies in cannot be
/// changed: no path leads to it. A copy of everything then becomes the root. It needs a place
/// from which no mount reaches the mounts outside: /proc, which is made private first.
fn private_root() -> Result<(), Errno> {
    match mount_change("/", ALL_PRIVATE) {
        Err(Errno::INVAL) => {}
        done => return done,
    }
    let directory = getcwd(Vec::new())?;
    mount_change(PROC, MountPropagationFlags::PRIVATE)?;
    mount_bind_recursive("/", PROC)?;
    mount_change(PROC, ALL_PRIVATE)?;
    chroot(PROC)?;
    chdir(directory)
}
