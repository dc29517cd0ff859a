//! The process of the guardian that answers. One thread, and nothing in it waits
//! but for the next thing to do.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::judge::{Judge, Verdict, counter_of};
use super::tally::Tally;
use super::{Orders, Role, look};
use crate::filter;
use crate::sys::area::{Area, Slot};
use crate::sys::fork::{Child, Side, own_pidfd, split};
use crate::sys::notify::{Answer, Notification, answer, wake_on_same_processor};

/// After which another standby is tried to be made.
const RETRY: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// All that it works with.
pub struct Active<'a> {
    area: &'a Area,
    listener: BorrowedFd<'a>,
    judge: Judge<'a>,
    tally: Tally<'a>,
}

impl Active<'_> {
    /// Goes on where another process stopped.
    pub fn new<'a>(orders: Orders<'_>, area: &'a Area, listener: BorrowedFd<'a>) -> Active<'a> {
        wake_on_same_processor(listener);
        Active {
            area,
            listener,
            judge: Judge::new(orders.policy, area),
            tally: Tally::new(area),
        }
    }

    /// Answers until no process has the filter any more: `None`. Another role is
    /// that of a standby which it has made, and whose return this is.
    pub fn run(mut self, mut twin: Option<Child>) -> Option<Role> {
        loop {
            if twin.is_none() {
                twin = match own_pidfd().and_then(|own| Ok((split()?, own))) {
                    Ok((Side::Parent(child), _)) => Some(child),
                    Ok((Side::Child, own)) => return Some(Role::Standby(own)),
                    // As many processes as may be: tried again after a while.
                    Err(_) => None,
                };
            }
            let pidfd = twin
                .as_ref()
                .map_or(self.listener, |twin| twin.pidfd.as_fd());
            let longest = twin.is_none().then_some(RETRY);
            let mut fds = [
                PollFd::from_borrowed_fd(self.listener, PollFlags::IN),
                PollFd::from_borrowed_fd(pidfd, PollFlags::IN),
            ];
            if poll(&mut fds, longest.as_ref()).is_err() {
                continue;
            }
            let asked = fds[0].revents();
            let twin_ended = !fds[1].revents().is_empty();
            if asked.contains(PollFlags::IN) {
                self.take();
            } else if asked.contains(PollFlags::HUP) {
                return None;
            }
            if twin_ended && let Some(ended) = twin.take() {
                ended.reap();
            }
        }
    }

    fn take(&mut self) {
        let area = self.area;
        let (last, slots) = area.slots.split_last().expect("there are slots");
        let free = slots.iter().find(|slot| slot.read().is_none());
        let slot = free.unwrap_or(last);
        let Some(asked) = slot.receive(self.listener) else {
            return;
        };
        self.decide(slot, &asked);
    }

    fn decide(&mut self, slot: &Slot, asked: &Notification) {
        let Some(call) = filter::call(asked.arch, asked.number) else {
            return self.finish(slot, asked.id, Answer::Continue);
        };
        let exe = look::executable(asked.tid);
        let executable = self.tally.executable(exe.as_deref().unwrap_or(b"?"));
        let counter = counter_of(call);
        if let Some(counter) = counter {
            let process = || look::process(asked.tid).unwrap_or(asked.tid);
            self.tally.seen(executable, counter, asked.tid, process);
        }
        match self.judge.verdict(call, asked, exe.as_deref()) {
            Verdict::Now(answer, fate) => {
                if let Some(counter) = counter {
                    self.tally.ended(executable, counter, fate, 0);
                }
                self.finish(slot, asked.id, answer);
            }
            Verdict::Unnoticed => self.finish(slot, asked.id, Answer::Continue),
        }
    }

    fn finish(&self, slot: &Slot, id: u64, with: Answer) {
        answer(self.listener, id, with);
        slot.clear();
    }
}
