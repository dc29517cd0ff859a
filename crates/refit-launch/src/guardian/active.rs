//! The process of the guardian that answers. It has one thread, which waits only
//! for the next event.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use refit_session::{EventRing, POLICY_TRACE, now_ns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::decision::{Configuration, Decider, Decision, counter_of};
use super::look::{self, Threads};
use super::memory::{GuardianMemory, SLOTS};
use super::opener::{LEFT_TO_KERNEL, OPENED, Opening, adopt_opener, adopt_standby};
use super::reader::{self, Readers, Reading};
use super::request::Request;
use super::standby::Role;
use super::tally::{Outcome, Tally};
use super::trace;
use crate::filter::{self, Call};
use crate::sys::fork::{Child, Side, fork, split};
use crate::sys::notify::{Answer, Notification, Slot, answer, still_waits, wake_on_same_processor};

/// The time between two attempts to fork a standby, and between two checks whether
/// callers of openers still wait.
const SOON_NS: u64 = 100_000_000;

/// The maximum of openers at one time.
const MOST_OPENERS: usize = 64;

/// The state of the active process.
pub struct Active<'a> {
    memory: &'a GuardianMemory,
    listener: BorrowedFd<'a>,
    decider: Decider<'a>,
    tally: Tally<'a>,
    /// Held calls: when each is to go on (CLOCK_MONOTONIC, ns), and its slot.
    held: BTreeSet<(u64, usize)>,
    /// Processes that open files, and the slots of the calls.
    openers: Vec<(Child, usize)>,
    /// Processes that read what calls point to.
    readers: Readers,
    /// The threads that called last.
    threads: Threads,
    /// Where calls are traced.
    trace: Option<&'a EventRing>,
}

impl<'a> Active<'a> {
    /// Continues where another process stopped: calls that were received go to the
    /// kernel, except those for which a file is being opened.
    pub fn new(
        configuration: Configuration<'a>,
        memory: &'a GuardianMemory,
        listener: BorrowedFd<'a>,
    ) -> Active<'a> {
        wake_on_same_processor(listener);
        let traces = configuration.policy.flags & POLICY_TRACE != 0;
        let mut active = Active {
            memory,
            listener,
            decider: Decider::new(configuration, memory),
            tally: Tally::new(&memory.tally),
            held: BTreeSet::new(),
            openers: Vec::new(),
            readers: Readers::default(),
            threads: Threads::new(),
            trace: configuration.ring.filter(|_| traces),
        };
        for index in 0..SLOTS {
            active.inherit(index);
        }
        active
    }

    fn inherit(&mut self, index: usize) {
        let slot = &self.memory.slots[index];
        let Some(notification) = slot.read() else {
            return slot.clear();
        };
        let opener = match slot.opener.load(Acquire) {
            0 | OPENED | LEFT_TO_KERNEL => None,
            pid => adopt_opener(pid),
        };
        if let Some(opener) = opener.or_else(|| adopt_standby(slot)) {
            return self.openers.push((opener, index));
        }
        self.memory.tally.released.fetch_add(1, Relaxed);
        self.end_open(index, &notification);
    }

    /// Answers until no process has the filter any more, and returns `None`. A standby
    /// that it forked returns from here too, with its role.
    pub fn run(mut self, mut standby: Option<Child>) -> Option<Role> {
        if standby.is_none() {
            self.memory.tally.takeovers.fetch_add(1, Relaxed);
        }
        loop {
            if standby.is_none() {
                standby = match Child::own().and_then(|own| Ok((split()?, own))) {
                    Ok((Side::Parent(child), _)) => Some(child),
                    Ok((Side::Child, own)) => return Some(Role::Standby(own)),
                    // The limit of processes is reached: it is tried again soon.
                    Err(_) => None,
                };
            }
            self.memory.steps.fetch_add(1, Relaxed);
            let now = now_ns();
            self.release_held(now);
            self.assign_readers(now);
            let soon = (standby.is_none() || !self.openers.is_empty()).then_some(now + SOON_NS);
            let next = self.held.first().map(|(until, _)| *until);
            let reading = self.readers.next_ns();
            let until = soon.into_iter().chain(next).chain(reading).min();
            let timeout = until.map(|until| {
                let left = until.saturating_sub(now);
                Timespec {
                    tv_sec: (left / 1_000_000_000) as i64,
                    tv_nsec: (left % 1_000_000_000) as i64,
                }
            });
            let mut fds = vec![PollFd::from_borrowed_fd(self.listener, PollFlags::IN)];
            let others = standby
                .iter()
                .chain(self.openers.iter().map(|(child, _)| child));
            fds.extend(
                others
                    .map(|child| child.pidfd.as_fd())
                    .chain(self.readers.events())
                    .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)),
            );
            if poll(&mut fds, timeout.as_ref()).is_err() {
                continue;
            }
            let notification = fds[0].revents();
            let mut ended = fds[1..].iter().map(|fd| !fd.revents().is_empty());
            let standby_ended = standby.is_some() && ended.next() == Some(true);
            let ended: Vec<bool> = ended.collect();
            let (ended, read) = ended.split_at(self.openers.len());
            drop(fds);
            if notification.contains(PollFlags::IN) {
                self.receive();
            } else if notification.contains(PollFlags::HUP) {
                return None;
            }
            self.end_opens(ended);
            for (index, reading) in self.readers.collect(read) {
                self.go_on(index, reading);
            }
            if standby_ended && let Some(ended) = standby.take() {
                ended.reap();
            }
        }
    }

    /// Receives one call, and answers it or passes it on.
    fn receive(&mut self) {
        let memory = self.memory;
        // The last slot is for calls that are answered immediately.
        let free = memory.slots[..SLOTS - 1]
            .iter()
            .position(|slot| slot.read().is_none());
        let index = free.unwrap_or(SLOTS - 1);
        let slot = &memory.slots[index];
        let Some(notification) = slot.receive(self.listener) else {
            return;
        };
        slot.since_ns.store(now_ns(), Relaxed);
        let Some(call) = filter::call(notification.arch, notification.number) else {
            return self.finish(slot, notification.id, Answer::Continue);
        };
        if free.is_none() {
            memory.tally.crowded.fetch_add(1, Relaxed);
            return self.finish(slot, notification.id, Answer::Continue);
        }
        if reader::is_needed(call) {
            self.readers.add(index, now_ns());
        } else {
            self.decide(index, call, &notification, Reading::Nothing);
        }
    }

    /// Calls that were not read in time go to the kernel; others to readers.
    fn assign_readers(&mut self, now_ns: u64) {
        self.readers.assign(self.memory, &mut self.decider);
        for index in self.readers.overdue(now_ns) {
            self.memory.tally.path_unknown.fetch_add(1, Relaxed);
            self.go_on(index, Reading::Nothing);
        }
    }

    /// Decides a call that was with a reader.
    fn go_on(&mut self, index: usize, reading: Reading) {
        let notification = self.memory.slots[index].read();
        let call = |of: &Notification| filter::call(of.arch, of.number);
        if let Some((notification, call)) = notification.and_then(|of| Some((of, call(&of)?))) {
            self.decide(index, call, &notification, reading);
        }
    }

    fn decide(&mut self, index: usize, call: Call, notification: &Notification, reading: Reading) {
        let slot = &self.memory.slots[index];
        let request = match reading {
            Reading::Open(request) => Some(request),
            Reading::Nothing | Reading::Decided(_) => Request::of(call, notification),
        };
        let opens = matches!(call, Call::Open | Call::Openat | Call::Openat2);
        if opens && !request.is_some_and(|request| request.is_sync()) {
            return self.finish(slot, notification.id, Answer::Continue);
        }
        let Some(counter) = counter_of(call) else {
            self.decider.note(call, notification);
            return self.finish(slot, notification.id, Answer::Continue);
        };
        let thread = self.threads.of(notification.tid);
        let path = thread.as_ref().map_or(&b"?"[..], |(_, path)| path);
        let executable = self.tally.executable(path);
        let process = || thread.as_ref().and_then(|(thread, _)| thread.process());
        self.tally
            .seen(executable, counter, notification.tid, process);
        slot.executable.store(executable as u32 + 1, Relaxed);
        let Some((thread, exe)) = thread else {
            return self.end(index, notification, Answer::Continue, Outcome::Real);
        };
        let exe = look::basename(&exe);
        let decision = match (request, reading) {
            (Some(request), _) => self.decider.of_open(&request, notification, exe),
            (None, Reading::Decided(decision)) => decision,
            (None, _) => self.decider.of_call(call, notification, thread, exe),
        };
        match (decision, request) {
            (Decision::Now(answer, outcome), _) => self.end(index, notification, answer, outcome),
            (Decision::Hold { until_ns }, _) => {
                self.held.insert((until_ns, index));
            }
            (Decision::Open, Some(request)) => self.open(index, notification, request, exe),
            (Decision::Open, None) => {
                self.end(index, notification, Answer::Continue, Outcome::Real)
            }
        }
    }

    /// Ends a counted call with this answer.
    fn end(&self, index: usize, notification: &Notification, with: Answer, outcome: Outcome) {
        self.end_after(index, notification, with, outcome, 0);
    }

    fn end_after(
        &self,
        index: usize,
        notification: &Notification,
        with: Answer,
        outcome: Outcome,
        held_ns: u64,
    ) {
        let slot = &self.memory.slots[index];
        let counter = filter::call(notification.arch, notification.number).and_then(counter_of);
        if let (Some(counter), Some(executable)) =
            (counter, slot.executable.load(Relaxed).checked_sub(1))
        {
            self.tally
                .ended(executable as usize, counter, outcome, held_ns);
            if let Some(ring) = self.trace.filter(|_| counter.is_flush()) {
                let since_ns = slot.since_ns.load(Relaxed);
                ring.trace(&trace::event(
                    notification,
                    counter,
                    with,
                    outcome,
                    since_ns,
                ));
            }
        }
        self.finish(slot, notification.id, with);
    }

    fn finish(&self, slot: &Slot, id: u64, with: Answer) {
        answer(self.listener, id, with);
        slot.clear();
    }

    /// Passes held calls to the kernel whose time has come.
    fn release_held(&mut self, now_ns: u64) {
        while let Some((until, index)) = self.held.first().copied()
            && until <= now_ns
        {
            self.held.pop_first();
            let slot = &self.memory.slots[index];
            if let Some(notification) = slot.read() {
                let held_ns = now_ns.saturating_sub(slot.since_ns.load(Relaxed));
                self.end_after(
                    index,
                    &notification,
                    Answer::Continue,
                    Outcome::Real,
                    held_ns,
                );
            }
        }
    }

    fn open(&mut self, index: usize, notification: &Notification, request: Request, exe: &[u8]) {
        let slot = &self.memory.slots[index];
        let opening = Opening {
            rules: &self.decider.rules,
            filesystems: &mut self.decider.filesystems,
            slot,
            listener: self.listener,
            notification,
            request,
            exe,
        };
        let started = if self.openers.len() < MOST_OPENERS {
            fork(|| {
                opening.run();
                0
            })
            .ok()
        } else {
            None
        };
        match started {
            Some(child) => {
                // From now on the opener may act.
                let pid = child.pid.as_raw_nonzero().get().cast_unsigned();
                slot.opener.store(pid, Release);
                self.openers.push((child, index));
            }
            None => self.leave(index, notification),
        }
    }

    /// Leaves an open synchronous.
    fn leave(&self, index: usize, notification: &Notification) {
        self.memory.tally.left_synchronous.fetch_add(1, Relaxed);
        self.end(index, notification, Answer::Continue, Outcome::Real);
    }

    /// `ended[i]`: the opener number i has ended.
    fn end_opens(&mut self, ended: &[bool]) {
        for at in (0..ended.len()).rev() {
            let index = self.openers[at].1;
            let notification = self.memory.slots[index].read();
            if ended[at] {
                let (child, _) = self.openers.swap_remove(at);
                child.reap();
                match (notification, adopt_standby(&self.memory.slots[index])) {
                    (Some(_), Some(standby)) => self.openers.push((standby, index)),
                    (Some(notification), None) => self.end_open(index, &notification),
                    (None, _) => {}
                }
            } else if notification
                .is_none_or(|notification| !still_waits(self.listener, notification.id))
            {
                // Its caller was killed; or the opener is done and about to end.
                if ![OPENED, LEFT_TO_KERNEL]
                    .contains(&self.memory.slots[index].opener.load(Acquire))
                {
                    let _ = pidfd_send_signal(&self.openers[at].0.pidfd, Signal::KILL);
                }
            }
        }
    }

    fn end_open(&self, index: usize, notification: &Notification) {
        let slot = &self.memory.slots[index];
        match slot.opener.load(Acquire) {
            OPENED => {
                let descriptor = slot.descriptor.load(Acquire);
                self.end(
                    index,
                    notification,
                    Answer::Value(descriptor),
                    Outcome::Suppressed,
                );
            }
            LEFT_TO_KERNEL => self.end(index, notification, Answer::Continue, Outcome::Real),
            _ => self.leave(index, notification),
        }
    }
}
