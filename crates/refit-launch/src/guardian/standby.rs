//! The process of the guardian that watches the other.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::sys::fork::{Child, leave_session};

/// The time between two looks at the active process, and the time that it has to
/// receive a call which one look finds waiting.
const LOOK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
const GRACE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What a process of the guardian is for.
pub enum Role {
    /// It answers. Holds the standby, if there is one.
    Active(Option<Child>),
    /// It watches the active process, which it holds.
    Standby(Child),
}

/// Waits for the end of the active process, and ends it where it answers no more;
/// `None` when no process has the filter any more. `steps` changes whenever the
/// active process has done something.
pub fn wait(listener: BorrowedFd<'_>, active: &Child, steps: &AtomicU64) -> Option<Role> {
    // Whoever kills all processes of the program's session leaves this one.
    leave_session();
    let mut suspected_at = None;
    loop {
        // Whether there is something to receive does not wake it.
        let mut fds = [
            PollFd::from_borrowed_fd(listener, PollFlags::empty()),
            PollFd::from_borrowed_fd(active.pidfd.as_fd(), PollFlags::IN),
        ];
        let timeout = suspected_at.map_or(LOOK, |_| GRACE);
        let Ok(ready) = poll(&mut fds, Some(&timeout)) else {
            continue;
        };
        if fds[0].revents().contains(PollFlags::HUP) {
            return None;
        }
        if !fds[1].revents().is_empty() {
            return Some(Role::Active(None));
        }
        if ready == 0 {
            let now = is_call_waiting(listener).then(|| steps.load(Relaxed));
            if now.is_some() && now == suspected_at && !is_runnable(active) {
                // It is stopped, or something that it looks at does not answer. Where it
                // cannot even die, it does nothing any more.
                let _ = pidfd_send_signal(&active.pidfd, Signal::KILL);
                return Some(Role::Active(None));
            }
            suspected_at = now;
        }
    }
}

fn is_call_waiting(listener: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::IN)
}

/// Whether a process only waits for a processor; so also where that is unknown.
fn is_runnable(process: &Child) -> bool {
    let scheduled = process.scheduled();
    scheduled.is_none_or(|scheduled| scheduled.is_runnable)
}
