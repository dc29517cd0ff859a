//! Mounts, a network and process numbers of this process's own (namespaces(7)).

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind_recursive, mount_change};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{chdir, chroot, fchdir, getcwd};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

const PROC: &str = "/proc";
const ALL_PRIVATE: MountPropagationFlags =
    MountPropagationFlags::PRIVATE.union(MountPropagationFlags::REC);

/// Where this process was before it had namespaces of its own.
#[derive(Debug)]
pub struct Outside {
    mounts: File,
    network: File,
    /// The root directory, which in a chroot is not that of the mounts.
    root: OwnedFd,
    /// The current directory, as the mounts there have it: a name below the same directory of other mounts is on another
    /// mount, to which link(2) makes no link.
    directory: OwnedFd,
}

impl Outside {
    /// Where this process is now.
    ///
    /// # Errors
    /// No descriptor is free, or there is no /proc.
    pub fn here() -> io::Result<Outside> {
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Outside {
            mounts: File::open("/proc/self/ns/mnt")?,
            network: File::open("/proc/self/ns/net")?,
            root: openat(CWD, "/", directory, Mode::empty())?,
            directory: openat(CWD, ".", directory, Mode::empty())?,
        })
    }

    /// Goes back to its mounts, its root and its current directory.
    ///
    /// # Errors
    /// Not root.
    pub fn return_to_mounts(&self) -> io::Result<()> {
        move_into_link_name_space(self.mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
        // setns(2) goes to the root of the mounts, also from within a chroot.
        fchdir(&self.root)?;
        chroot(".")?;
        Ok(fchdir(&self.directory)?)
    }

    /// Goes back to its network.
    ///
    /// # Errors
    /// Not root.
    pub fn return_to_network(&self) -> io::Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.network.as_fd(), kind)?)
    }
}

/// From now on mounts are this process's and its children's own, and none leaves it.
///
/// # Errors
/// Not root, or no namespaces.
pub fn own_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(private_root()?)
}

/// From now on this process and its children have a network of their own: a loopback device, and nothing else.
///
/// # Errors
/// Not root, or no namespaces.
pub fn own_network() -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)?;
    start_loopback()
}

/// The next child is the first process of a pid namespace: with it ends everything that it started.
///
/// # Errors
/// Not root, or no namespaces.
pub fn own_pids() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID)
}

fn unshare(what: UnshareFlags) -> io::Result<()> {
    // SAFETY: none of the flags used here makes descriptors this thread's own, for which the function is unsafe.
    unsafe { unshare_unsafe(what) }.map_err(|error| match error {
        // Of namespaces(7), and of no disk.
        Errno::NOSPC => io::Error::other(
            "a limit is reached: sysctl user.max_mnt_namespaces user.max_net_namespaces user.max_pid_namespaces",
        ),
        error => error.into(),
    })
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

/// netdevice(7). A new network's loopback device is down.
fn start_loopback() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: numbers and bytes, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    // SAFETY: the request is ours, and as the kernel wants it; it writes the flags into it, and nothing else.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the flags are what the kernel has just written.
    unsafe { request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short };
    // SAFETY: as above; it reads the request.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
