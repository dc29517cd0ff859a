//! Starts commands in the namespaces of another process: those of a machine that is booted in a container.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The namespaces of a process.
pub struct Inside {
    process: OwnedFd,
    own: File,
}

impl Inside {
    /// Those of this process.
    pub fn of(pid: u32) -> io::Result<Inside> {
        // SAFETY: pidfd_open takes two integers and touches no memory of ours.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let process = i32::try_from(process).expect("descriptors are ints");
        if process == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Inside {
            // SAFETY: it was opened above, and nothing else has it.
            process: unsafe { OwnedFd::from_raw_fd(process) },
            own: File::open("/proc/self/ns/pid")?,
        })
    }

    /// Lets `start` start this command there, whose program is named by its path there.
    pub fn run<T>(
        &self,
        command: &mut Command,
        start: impl FnOnce(&mut Command) -> io::Result<T>,
    ) -> io::Result<T> {
        let process = self.process.as_raw_fd();
        let namespaces = libc::CLONE_NEWNS
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWCGROUP;
        // SAFETY: between fork and exec this one system call is made, which takes no pointer. The
        // descriptor is open until the command has been started.
        unsafe { command.pre_exec(move || enter(process, namespaces)) };
        // Of processes the namespace changes with the next fork, of this thread alone.
        enter(process, libc::CLONE_NEWPID)?;
        let done = start(command);
        enter(self.own.as_raw_fd(), libc::CLONE_NEWPID)?;
        done
    }
}

fn enter(of: i32, namespaces: i32) -> io::Result<()> {
    // SAFETY: setns takes two integers and touches no memory of ours.
    match unsafe { libc::setns(of, namespaces) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
