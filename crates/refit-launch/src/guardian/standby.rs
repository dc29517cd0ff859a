//! The process of the guardian that waits for the end of the other.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use rustix::event::{PollFd, PollFlags, poll};

use super::Role;
use crate::sys::area::Area;
use crate::sys::notify::{Answer, answer};

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

/// The other process was killed: the kernel does what it had received. That it
/// had answered already is no error.
pub fn release(area: &Area, listener: BorrowedFd<'_>) {
    area.takeovers.fetch_add(1, Relaxed);
    for slot in &area.slots {
        if let Some(asked) = slot.read()
            && answer(listener, asked.id, Answer::Continue)
        {
            area.released.fetch_add(1, Relaxed);
        }
        slot.clear();
    }
}
