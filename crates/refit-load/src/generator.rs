//! Sends each request when it is due, on one thread: a timer with absolute times, and epoll.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use thiserror::Error;

use crate::connection::{Connection, Event};
use crate::latencies::Latencies;
use crate::protocol::Protocol;
use crate::sys::run_first;
use crate::target::Target;

/// From the last connection to the first request, in nanoseconds: the thread sleeps before it, as before the others.
const LEAD: u64 = 2_000_000;
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// What the timer is called among the connections.
const TIMER: u64 = u64::MAX;

/// What is sent, where to, and when.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the server listens.
    pub target: Target,
    /// How it is asked.
    pub protocol: Protocol,
    /// The bytes of each request ([`Protocol::request`]).
    pub request: Vec<u8>,
    /// When each request is due, in nanoseconds from the start; rising.
    pub due: Vec<u64>,
    /// The most connections; each has one request on its way at most. A further one is opened where a request is due and
    /// none is free: servers need time to take many at once.
    pub connections: usize,
    /// How long after the last request an answer may come.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// From the time at which each request was due until its answer had come.
    pub latencies: Latencies,
    /// From the time at which a request could be sent, because it was due and a connection was free, until it was: what
    /// the generator itself was late by.
    pub lateness: Latencies,
    /// Requests for which no connection was free when they were due.
    pub held: u64,
    /// Connections that were open in the end.
    pub connections: usize,
    /// Requests that were sent and not answered, or not sent, when it ended.
    pub unanswered: u64,
    /// From the time at which the first request was due until the last answer had come.
    pub took: Duration,
    /// The thread ran before all ordinary ones.
    pub ran_first: bool,
}

/// It cannot go on: what it sent so far tells nothing.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The server does not take connections.
    #[error("cannot connect to {target}: {cause}")]
    Connect {
        /// Where to.
        target: String,
        /// The kernel's word.
        cause: io::Error,
    },
    /// The server did not answer a request, or with an error.
    #[error("request {number}: {what}")]
    Answer {
        /// How many requests had been answered before.
        number: u64,
        /// What came instead.
        what: String,
    },
    /// epoll or the timer.
    #[error("cannot wait for answers: {0}")]
    Wait(#[from] rustix::io::Errno),
}

/// Sends all requests and waits for their answers, until `stop` is set. The first answer that is an error ends it: under
/// half a load a server is not the server that was to be measured.
///
/// # Errors
/// [`LoadError`].
pub fn generate(plan: &Plan, stop: &AtomicBool) -> Result<Generated, LoadError> {
    let ran_first = run_first();
    let mut generator = Generator::new(plan)?;
    generator.run(stop)?;
    let connections = generator.connections.len();
    let mut result = generator.result;
    result.unanswered = plan.due.len() as u64 - result.latencies.count();
    result.connections = connections;
    result.ran_first = ran_first;
    Ok(result)
}

struct Generator<'a> {
    plan: &'a Plan,
    epoll: OwnedFd,
    timer: OwnedFd,
    connections: Vec<Connection>,
    /// Connections without a request, the one that has been free for the longest first: all are used.
    free: VecDeque<usize>,
    /// Requests that are due and have no connection, by the time at which they were.
    waiting: VecDeque<u64>,
    /// The first request that is not due yet.
    next: usize,
    /// The clock at the first request's time.
    start: u64,
    /// For an answer. Its memory is there before the first request: to get memory, this thread would wait for others of
    /// the process, which run when the machine lets them.
    scratch: Vec<u8>,
    result: Generated,
}

/// Nanoseconds of a clock that nobody sets.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

impl<'a> Generator<'a> {
    fn new(plan: &'a Plan) -> Result<Generator<'a>, LoadError> {
        let mut generator = Generator {
            plan,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timer: timerfd_create(
                TimerfdClockId::Monotonic,
                TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
            )?,
            connections: Vec::with_capacity(plan.connections),
            free: VecDeque::with_capacity(plan.connections),
            waiting: VecDeque::with_capacity(plan.connections),
            next: 0,
            start: 0,
            scratch: vec![1; PIECE],
            result: Generated::default(),
        };
        let timer = epoll::EventData::new_u64(TIMER);
        epoll::add(
            &generator.epoll,
            &generator.timer,
            timer,
            epoll::EventFlags::IN,
        )?;
        generator.make_room_for_descriptors();
        generator.add_connection()?;
        generator.start = now() + LEAD;
        Ok(generator)
    }

    /// Makes the table of descriptors large enough for all connections: of a process with threads the kernel waits for an RCU
    /// grace period, tens of milliseconds, when it grows (fs/file.c, expand_fdtable).
    fn make_room_for_descriptors(&self) {
        let last = i32::try_from(self.plan.connections)
            .unwrap_or(i32::MAX)
            .saturating_add(64);
        // Where there may not be so many, a connection will tell.
        drop(rustix::io::fcntl_dupfd_cloexec(&self.timer, last));
    }

    fn add_connection(&mut self) -> Result<(), LoadError> {
        let index = self.connections.len();
        let connection = self.connect(index)?;
        self.connections.push(connection);
        self.free.push_back(index);
        Ok(())
    }

    /// Whether a connection is free; opens a further one if there may be more.
    fn has_free(&mut self) -> Result<bool, LoadError> {
        if self.free.is_empty() && self.connections.len() < self.plan.connections {
            self.add_connection()?;
        }
        Ok(!self.free.is_empty())
    }

    fn connect(&self, index: usize) -> Result<Connection, LoadError> {
        let connection =
            Connection::open(&self.plan.target).map_err(|cause| LoadError::Connect {
                target: self.plan.target.to_string(),
                cause,
            })?;
        epoll::add(
            &self.epoll,
            &connection,
            named(index),
            epoll::EventFlags::IN,
        )?;
        Ok(connection)
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<(), LoadError> {
        let all = self.plan.due.len() as u64;
        let last = self.plan.due.last().copied().unwrap_or(0);
        let patience = u64::try_from(self.plan.patience.as_nanos()).unwrap_or(u64::MAX);
        let deadline = (self.start + last).saturating_add(patience);
        let look = Timespec::try_from(LOOK).expect("it is short");
        let mut events = Vec::with_capacity(256);
        while self.result.latencies.count() < all && !stop.load(Ordering::Relaxed) {
            let now = self.send_due()?;
            if now > deadline {
                break;
            }
            self.set_timer()?;
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&look)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                self.handle(*event)?;
            }
        }
        self.result.took = Duration::from_nanos(now().saturating_sub(self.start));
        Ok(())
    }

    /// Sends whatever is due and has a connection; the time.
    fn send_due(&mut self) -> Result<u64, LoadError> {
        let mut time = now();
        while let Some(due) = self.plan.due.get(self.next).map(|due| self.start + due) {
            if due > time {
                break;
            }
            self.next += 1;
            match self.waiting.is_empty() && self.has_free()? {
                true => self.send(due)?,
                false => {
                    self.result.held += 1;
                    self.waiting.push_back(due);
                }
            }
            time = now();
        }
        Ok(time)
    }

    /// Sends the request that was due then on a connection that is free.
    fn send(&mut self, due: u64) -> Result<(), LoadError> {
        let Some(index) = self.free.pop_front() else {
            return Ok(());
        };
        let connection = &mut self.connections[index];
        let possible = due.max(connection.free_since);
        let is_whole = connection.send(due, &self.plan.request);
        self.result.lateness.record(now().saturating_sub(possible));
        match is_whole {
            Ok(true) => Ok(()),
            Ok(false) => {
                let both = epoll::EventFlags::IN | epoll::EventFlags::OUT;
                Ok(epoll::modify(
                    &self.epoll,
                    &self.connections[index],
                    named(index),
                    both,
                )?)
            }
            Err(what) => Err(self.broken(what)),
        }
    }

    /// Wakes the thread when the next request is due.
    fn set_timer(&self) -> Result<(), LoadError> {
        let Some(due) = self.plan.due.get(self.next).map(|due| self.start + due) else {
            return Ok(());
        };
        let at = Timespec {
            tv_sec: (due / 1_000_000_000).cast_signed(),
            tv_nsec: (due % 1_000_000_000).cast_signed(),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: at,
        };
        // It also takes back that the timer has rung.
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }

    fn handle(&mut self, event: epoll::Event) -> Result<(), LoadError> {
        let (epoll::Event { data, flags }, input) = (event, epoll::EventFlags::IN);
        let name = data.u64();
        if name == TIMER {
            return Ok(());
        }
        let index = usize::try_from(name).unwrap_or(usize::MAX);
        if flags.contains(epoll::EventFlags::OUT) {
            match self.connections[index].go_on(&self.plan.request) {
                Ok(true) => {
                    epoll::modify(&self.epoll, &self.connections[index], named(index), input)?;
                }
                Ok(false) => {}
                Err(what) => return Err(self.broken(what)),
            }
        }
        match self.connections[index].read(self.plan.protocol, &mut self.scratch) {
            Event::Nothing => Ok(()),
            Event::Broken(what) => Err(self.broken(what)),
            Event::Closed => {
                self.connections[index] = self.connect(index)?;
                Ok(())
            }
            Event::Answered {
                error: Some(error), ..
            } => Err(self.broken(error)),
            Event::Answered { stays, error: None } => {
                let time = now();
                if let Some(request) = self.connections[index].request.take() {
                    self.result
                        .latencies
                        .record(time.saturating_sub(request.due));
                }
                if !stays {
                    self.connections[index] = self.connect(index)?;
                }
                self.connections[index].free_since = time;
                self.free.push_back(index);
                match self.waiting.pop_front() {
                    Some(due) => self.send(due),
                    None => Ok(()),
                }
            }
        }
    }

    fn broken(&self, what: String) -> LoadError {
        LoadError::Answer {
            number: self.result.latencies.count() + 1,
            what,
        }
    }
}

fn named(index: usize) -> epoll::EventData {
    epoll::EventData::new_u64(index as u64)
}

#[cfg(test)]
mod tests;
