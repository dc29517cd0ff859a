//! A file that was just made must not be lost with the process that made it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};

use rustix::event::{PollFd, PollFlags, poll};

use super::fork::{Child, run_and_exit};

/// A process that shares the descriptors of the one that started it, and goes on where that is killed. A file is in the
/// table as soon as it was made: open(2) is not left between the two, whatever signal comes.
pub struct Standby {
    /// Its number.
    pub pid: i32,
}

impl Standby {
    /// Starts it. When this process has ended, it runs `go_on` with the first file that this process opened from now
    /// on, if it is still open.
    ///
    /// # Errors
    /// There can be no more processes or descriptors.
    pub fn start(go_on: impl FnOnce(BorrowedFd<'_>)) -> io::Result<Standby> {
        // The table is shared: it is closed with the last of the two.
        let own = Child::own()?.pidfd.into_raw_fd();
        // SAFETY: it was just opened, and nobody closes it.
        let own = unsafe { BorrowedFd::borrow_raw(own) };
        // open(2) returns the lowest free number.
        let next = own.try_clone_to_owned()?.as_raw_fd();
        let work = || {
            let ends = &mut [PollFd::new(&own, PollFlags::IN)];
            while poll(ends, None).is_err() {}
            // SAFETY: takes numbers only.
            if unsafe { libc::fcntl(next, libc::F_GETFD) } >= 0 {
                // SAFETY: it is open, and the other process, which could close it, has ended.
                go_on(unsafe { BorrowedFd::borrow_raw(next) });
            }
            0
        };
        let flags = libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: without a stack of its own the child has a copy of this one, as fork(2) makes it. This process has one
        // thread, as every one that refit forks, so that no lock is held that the child would wait for.
        match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
            0 => run_and_exit(work),
            -1 => Err(io::Error::last_os_error()),
            pid => Ok(Standby { pid: pid as i32 }),
        }
    }

    /// Ends it. Afterwards nobody else has this process's descriptors.
    pub fn dismiss(self) {
        // SAFETY: numbers only; it is our child, and not waited for yet.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        // SAFETY: as above; the status is not wanted, and a null pointer is allowed for it (wait(2)).
        while unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}
