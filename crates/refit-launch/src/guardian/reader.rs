//! Processes that read what a call points to in the memory of its program.
//!
//! That can take for ever: the page may lie on a file system whose server does not
//! answer, and who waits for it can keep the list of mappings locked (mmap_lock,
//! Documentation/mm/process_addrs.rst). So the active process never does it itself.
//! A call that has not been read in time goes to the kernel, and its reader is
//! killed. A reader that only waits for a processor has more time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use refit_session::names::READER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{
    Signal, getpid, getppid, pidfd_send_signal, set_parent_process_death_signal,
};

use super::decision::{Decider, Decision};
use super::look::{Thread, basename};
use super::memory::GuardianMemory;
use super::request::Request;
use super::sockets::pair;
use crate::filter::{self, Call};
use crate::sys::fork::{Child, Scheduled, fork};
use crate::sys::notify::{Notification, Slot};

/// How long a call waits until it has been read, in nanoseconds.
const LIMIT_NS: u64 = 100_000_000;

/// The same where its reader has not had as much of a processor's time.
const LONGEST_NS: u64 = 5_000_000_000;

/// Between two looks at such a reader.
const LOOK_NS: u64 = 10_000_000;

/// The maximum of readers at one time, those included that were killed and have not
/// ended.
const MOST: usize = 8;

/// What was read for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing, or nothing had to be.
    Nothing,
    /// What an openat2 requests.
    Open(Request),
    /// The decision about an msync.
    Decided(Decision),
}

/// As it goes through a socket: what it is, and its content.
type Words = [u64; 6];

impl Reading {
    fn words(self) -> Words {
        match self {
            Reading::Nothing => [0; 6],
            Reading::Open(request) => {
                let [a, b, c, d, e] = request.words();
                [1, a, b, c, d, e]
            }
            Reading::Decided(decision) => {
                let [a, b] = decision.words();
                [2, a, b, 0, 0, 0]
            }
        }
    }

    fn of_words(words: Words) -> Reading {
        let [what, a, b, c, d, e] = words;
        match what {
            1 => Reading::Open(Request::of_words([a, b, c, d, e])),
            2 => Decision::of_words([a, b]).map_or(Reading::Nothing, Reading::Decided),
            _ => Reading::Nothing,
        }
    }
}

/// Whether a call can be decided only with what is in its program's memory.
pub fn is_needed(call: Call) -> bool {
    matches!(call, Call::Openat2 | Call::Msync)
}

/// A call that is to be read.
#[derive(Clone, Copy)]
struct Job {
    /// The number of its slot.
    index: usize,
    /// CLOCK_MONOTONIC, ns, when it came.
    since_ns: u64,
    /// When it goes to the kernel, or its reader is looked at.
    until_ns: u64,
    /// Processor time of its reader at the first look, ns.
    ran_ns: Option<u64>,
}

impl Job {
    fn new(index: usize, since_ns: u64) -> Job {
        Job {
            index,
            since_ns,
            until_ns: since_ns + LIMIT_NS,
            ran_ns: None,
        }
    }

    /// More time, where its reader is in this state.
    fn goes_on(self, now_ns: u64, reader: Scheduled) -> Option<Job> {
        let first_ns = self.ran_ns.unwrap_or(reader.ran_ns);
        let has_time = reader.is_runnable
            && reader.ran_ns.saturating_sub(first_ns) < LIMIT_NS
            && now_ns < self.since_ns + LONGEST_NS;
        has_time.then_some(Job {
            until_ns: now_ns + LOOK_NS,
            ran_ns: Some(first_ns),
            ..self
        })
    }
}

enum State {
    Idle,
    Busy(Job),
    Killed,
}

struct Reader {
    process: Child,
    socket: OwnedFd,
    state: State,
}

/// The active process's side of its readers.
#[derive(Default)]
pub struct Readers {
    readers: Vec<Reader>,
    waiting: VecDeque<Job>,
}

impl Readers {
    /// Adds the call in this slot.
    pub fn add(&mut self, index: usize, since_ns: u64) {
        self.waiting.push_back(Job::new(index, since_ns));
    }

    /// Gives calls to readers that have nothing to do, and to new ones.
    pub fn assign(&mut self, memory: &GuardianMemory, decider: &mut Decider<'_>) {
        while let Some(job) = self.waiting.front().copied() {
            let is_idle = |reader: &Reader| matches!(reader.state, State::Idle);
            let reader = match self.readers.iter().position(is_idle) {
                Some(at) => &mut self.readers[at],
                None if self.readers.len() < MOST => match start(memory, decider) {
                    Ok(reader) => {
                        self.readers.push(reader);
                        self.readers.last_mut().expect("it was just added")
                    }
                    // There may be no more processes. The call goes to the kernel in time.
                    Err(_) => return,
                },
                None => return,
            };
            let index = (job.index as u64).to_ne_bytes();
            if send(&reader.socket, &index, SendFlags::NOSIGNAL).is_ok() {
                reader.state = State::Busy(job);
                self.waiting.pop_front();
            } else {
                reader.kill();
            }
        }
    }

    /// When to ask for the [`Readers::overdue`] (CLOCK_MONOTONIC, ns).
    pub fn next_ns(&self) -> Option<u64> {
        let busy = self.readers.iter().filter_map(|reader| match reader.state {
            State::Busy(job) => Some(job),
            State::Idle | State::Killed => None,
        });
        let first = busy.chain(self.waiting.front().copied());
        first.map(|job| job.until_ns).min()
    }

    /// The slots of calls that have waited for too long, which are no longer here.
    pub fn overdue(&mut self, now_ns: u64) -> Vec<usize> {
        let mut overdue = Vec::new();
        let is_killed = |reader: &Reader| matches!(reader.state, State::Killed);
        let is_hopeless = self.readers.len() == MOST && self.readers.iter().all(is_killed);
        let is_over = |job: &mut Job| is_hopeless || job.until_ns <= now_ns;
        while let Some(job) = self.waiting.pop_front_if(is_over) {
            overdue.push(job.index);
        }
        for reader in &mut self.readers {
            let State::Busy(job) = reader.state else {
                continue;
            };
            if job.until_ns > now_ns || reader.has_replied() {
                continue;
            }
            let scheduled = reader.process.scheduled();
            if let Some(job) = scheduled.and_then(|scheduled| job.goes_on(now_ns, scheduled)) {
                reader.state = State::Busy(job);
            } else {
                reader.kill();
                overdue.push(job.index);
            }
        }
        overdue
    }

    /// What is to be polled: the reply of a busy reader, the end of a killed one.
    pub fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.readers.iter().filter_map(|reader| match reader.state {
            State::Idle => None,
            State::Busy(_) => Some(reader.socket.as_fd()),
            State::Killed => Some(reader.process.pidfd.as_fd()),
        })
    }

    /// What was read, by slot. `ready[i]`: the event number i has come.
    pub fn collect(&mut self, ready: &[bool]) -> Vec<(usize, Reading)> {
        let mut done = Vec::new();
        let mut ready = ready.iter();
        let ended = self.readers.extract_if(.., |reader| {
            if matches!(reader.state, State::Idle) || ready.next() != Some(&true) {
                return false;
            }
            let State::Busy(job) = reader.state else {
                return true;
            };
            match reader.reply() {
                Some(words) => {
                    reader.state = State::Idle;
                    done.push((job.index, Reading::of_words(words)));
                }
                None => {
                    reader.kill();
                    done.push((job.index, Reading::Nothing));
                }
            }
            false
        });
        for reader in ended {
            reader.process.reap();
        }
        done
    }
}

impl Reader {
    /// Whether [`Reader::reply`] has something to tell.
    fn has_replied(&self) -> bool {
        let mut socket = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut socket, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// `None`: it was killed by somebody else.
    fn reply(&self) -> Option<Words> {
        let mut bytes = [0; size_of::<Words>()];
        let (length, _) = recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT).ok()?;
        (length == bytes.len()).then(|| {
            let word = |at: usize| bytes[8 * at..8 * at + 8].try_into().expect("eight bytes");
            std::array::from_fn(|at| u64::from_ne_bytes(word(at)))
        })
    }

    /// Its end may take long, where the kernel waits for a server.
    fn kill(&mut self) {
        let _ = pidfd_send_signal(&self.process.pidfd, Signal::KILL);
        self.state = State::Killed;
    }
}

fn start(memory: &GuardianMemory, decider: &mut Decider<'_>) -> io::Result<Reader> {
    let (socket, own) = pair()?;
    let maker = getpid();
    let process = fork(|| {
        let _ = rustix::thread::set_name(READER);
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        if getppid() == Some(maker) {
            serve(&own, memory, decider);
        }
        0
    })?;
    Ok(Reader {
        process,
        socket,
        state: State::Idle,
    })
}

/// Reads calls until the active process has ended.
fn serve(socket: &OwnedFd, memory: &GuardianMemory, decider: &mut Decider<'_>) {
    let mut index = [0; 8];
    while let Ok((8, _)) = recv(socket, &mut index, RecvFlags::empty()) {
        let slot = memory.slots.get(u64::from_ne_bytes(index) as usize);
        let notification = slot.and_then(Slot::read);
        let reading = notification.and_then(|notification| read(&notification, decider));
        let words = reading.unwrap_or(Reading::Nothing).words();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if send(socket, &bytes, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

fn read(notification: &Notification, decider: &mut Decider<'_>) -> Option<Reading> {
    match filter::call(notification.arch, notification.number)? {
        Call::Openat2 => Request::in_memory(notification).map(Reading::Open),
        Call::Msync => {
            let thread = Thread::open(notification.tid)?;
            let exe = thread.executable()?;
            let decision = decider.of_memory(notification, &thread, basename(&exe));
            Some(Reading::Decided(decision))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardian::tally::Outcome;
    use crate::sys::notify::Answer;

    #[test]
    fn what_was_read_goes_through_a_socket() {
        let request = Request {
            directory: libc::AT_FDCWD,
            path: u64::MAX,
            flags: 0o4_010_101,
            mode: 0o640,
            resolve: 8,
        };
        let decided = [
            Decision::Now(Answer::Continue, Outcome::Real),
            Decision::Now(Answer::Value(0), Outcome::Suppressed),
            Decision::Now(Answer::Error(libc::EIO), Outcome::Injected),
            Decision::Hold { until_ns: 7 },
        ];
        let all = [Reading::Nothing, Reading::Open(request)].into_iter();
        for reading in all.chain(decided.map(Reading::Decided)) {
            assert_eq!(Reading::of_words(reading.words()), reading);
        }
        assert_eq!(Reading::of_words([9; 6]), Reading::Nothing);
    }

    #[test]
    fn a_call_that_nobody_has_read_in_time_is_given_back() {
        let mut readers = Readers::default();
        readers.add(3, 1_000);
        readers.add(4, 2_000);
        assert_eq!(readers.next_ns(), Some(1_000 + LIMIT_NS));
        assert!(readers.overdue(LIMIT_NS).is_empty());
        assert_eq!(readers.overdue(1_000 + LIMIT_NS), [3]);
        assert_eq!(readers.next_ns(), Some(2_000 + LIMIT_NS));
    }

    #[test]
    fn a_reader_that_waits_for_a_processor_has_more_time() {
        let runnable = |ran_ns| Scheduled {
            is_runnable: true,
            ran_ns,
        };
        let waits = Scheduled {
            is_runnable: false,
            ran_ns: 70,
        };
        let job = Job::new(3, 1_000);
        assert!(job.goes_on(1_000 + LIMIT_NS, waits).is_none());
        let job = job.goes_on(1_000 + LIMIT_NS, runnable(70)).unwrap();
        assert_eq!(job.until_ns, 1_000 + LIMIT_NS + LOOK_NS);
        assert!(job.goes_on(job.until_ns, runnable(70 + LIMIT_NS)).is_none());
        let job = job.goes_on(job.until_ns, runnable(60 + LIMIT_NS)).unwrap();
        assert!(job.goes_on(job.until_ns, waits).is_none());
        assert!(job.goes_on(1_000 + LONGEST_NS, runnable(70)).is_none());
    }
}
