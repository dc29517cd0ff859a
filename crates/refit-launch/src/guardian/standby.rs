//! The process of the guardian that waits for the end of the other.

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::Role;

/// Waits for the end of the active process; `None` when no process has the
/// filter any more.
pub fn wait(listener: BorrowedFd<'_>, active: BorrowedFd<'_>) -> Option<Role> {
    loop {
        // Whether there is something to receive does not wake it.
        let mut fds = [
            PollFd::from_borrowed_fd(listener, PollFlags::empty()),
            PollFd::from_borrowed_fd(active, PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if fds[0].revents().contains(PollFlags::HUP) {
            return None;
        }
        if !fds[1].revents().is_empty() {
            return Some(Role::Active(None));
        }
    }
}
