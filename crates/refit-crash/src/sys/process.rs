//! Processes of the crash lab.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use libc::c_int;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal};

/// The exit code of a process of refit's after a panic.
const PANICKED: i32 = 101;

/// A forked process; killed and reaped when it is dropped.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
    status: Option<i32>,
}

impl Child {
    /// Waits for its end: its code, or 128 plus the signal.
    pub fn wait(&mut self) -> i32 {
        self.reap(0).unwrap_or(PANICKED)
    }

    /// As [`Child::wait`], if it has ended.
    pub fn poll(&mut self) -> Option<i32> {
        self.reap(libc::WNOHANG)
    }

    fn reap(&mut self, flags: c_int) -> Option<i32> {
        while self.status.is_none() {
            let mut status = 0;
            // SAFETY: it is our child and not yet reaped; the status is ours.
            let pid = unsafe { libc::waitpid(self.pid, &raw mut status, flags) };
            if pid == self.pid {
                self.status = Some(code(status));
            } else if pid == 0 {
                return None;
            } else if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                self.status = Some(PANICKED);
            }
        }
        self.status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.poll().is_none() {
            // SAFETY: it is our child and not yet reaped.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }
}

fn code(status: c_int) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}

/// Runs `work` in a forked process, which the kernel kills when this one ends.
///
/// # Errors
/// This process has other threads, or no process is free.
pub fn fork(work: impl FnOnce() -> i32) -> io::Result<Child> {
    let parent = pidfd_open(getpid(), PidfdFlags::empty())?;
    let forked = refit_run::fork(|| {
        let told = set_parent_process_death_signal(Some(Signal::KILL));
        if told.is_err() || has_ended(&parent) {
            return PANICKED;
        }
        drop(parent);
        // A panic must not unwind into what belongs to the parent.
        catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED)
    })?;
    Ok(Child {
        pid: forked.pid.as_raw_nonzero().get(),
        status: None,
    })
}

/// Whether the process ended before the kernel was told to kill this one with it
/// (pidfd_open(2): readable then). getppid(2) would not tell: for a parent outside of
/// the pid namespace it returns 0, whether that has ended or not.
fn has_ended(process: &OwnedFd) -> bool {
    let mut readable = [PollFd::new(process, PollFlags::IN)];
    poll(&mut readable, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Kills every other process of this pid namespace and waits for them. Only
/// for its first process.
pub fn kill_all() {
    // SAFETY: -1 means all that this process may signal, which are those of its
    // namespace; itself and outsiders are not among them (kill(2)).
    unsafe { libc::kill(-1, libc::SIGKILL) };
    loop {
        // SAFETY: no status is asked for.
        let pid = unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
        if pid < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// Memory is freed by writing to the disk that this process serves: its own
/// allocations must not wait for that (PR_SET_IO_FLUSHER(2const)). Without the
/// right to say so it serves all the same.
pub fn serve_io() {
    const PR_SET_IO_FLUSHER: c_int = 57;
    // SAFETY: takes numbers.
    unsafe {
        libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
        libc::mlockall(libc::MCL_CURRENT);
    }
}

/// Opens the descriptor under this number too, for programs started next.
///
/// # Errors
/// The number is beyond the limit.
pub fn also_as(fd: &impl AsRawFd, number: i32) -> io::Result<()> {
    // SAFETY: both are numbers; what `number` was before is closed, and the caller
    // has made sure that it is none of refit's pipe.
    if unsafe { libc::dup2(fd.as_raw_fd(), number) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
