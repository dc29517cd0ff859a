//! Where the time of a program's threads went: on a processor, waiting for one, or blocked, and on what.
//!
//! How long each thread ran and how long it waited for a processor the kernel counts (/proc/PID/task/TID/schedstat,
//! Documentation/scheduler/sched-stats.rst); the rest of its life it was blocked. What it was blocked on is sampled:
//! the system call that it is in, and the descriptor that the call is about. A thread's blocked time is divided as its samples
//! are.

mod blocked;
mod descriptor;
mod thread;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub use self::blocked::Activity;
use self::thread::Thread;
use crate::process_facts::executable_of;
use crate::tree::{at, is_guardian};

/// The mean time between two samples; at random from half of it to one and a half, so that no period of the program's
/// own is hidden.
const PAUSE: Duration = Duration::from_millis(10);
/// What took t of a processor is followed by a pause of this many t at least: with two such budgets at most 1 % of one
/// core.
const SHARE: u32 = 200;
/// Threads whose files stay open; those of more are opened for each look.
const MOST_KEPT: usize = 200;
/// More peers than this are one: `others`.
const MOST_PEERS: usize = 20;

/// Where the time of a program's threads went, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeAccount {
    /// How often all threads were looked at.
    pub samples: u64,
    /// The longest time between two looks: what begins and ends within it is not seen.
    pub longest_pause_ns: u64,
    /// Threads that were seen, of all processes.
    pub threads: u64,
    /// Processes that were seen.
    pub processes: u64,
    /// The sum of the lives of these threads: what `executables` add up to.
    pub thread_ns: u64,
    /// Processor time of processes that were not seen, or not to their end; their waits are not known.
    pub unseen_cpu_ns: u64,
    /// By executable: what its threads did, and for how long.
    pub executables: BTreeMap<String, BTreeMap<Activity, u64>>,
    /// Who was waited for over a network, and for how long: a part of `network`.
    pub peers: BTreeMap<String, u64>,
}

impl TimeAccount {
    /// The sums over all executables.
    #[must_use]
    pub fn totals(&self) -> BTreeMap<Activity, u64> {
        let mut totals = BTreeMap::new();
        for (activity, ns) in self.executables.values().flatten() {
            *totals.entry(*activity).or_default() += ns;
        }
        totals
    }
}

/// Looks at the threads of a program and of all its descendants now and then.
#[derive(Debug)]
pub struct TimeSampler {
    began: Instant,
    find: Budget,
    look: Budget,
    random: u64,
    account: TimeAccount,
    processes: BTreeMap<u32, Process>,
    looked: Option<Instant>,
    /// Files of threads that are kept open.
    kept: usize,
    peers: BTreeMap<String, u64>,
    /// Processor time of the threads that ended.
    ended_cpu_ns: u64,
}

#[derive(Debug)]
struct Process {
    executable: String,
    threads: BTreeMap<u32, Thread>,
}

/// When something is done again, so that it takes at most half a percent of one core.
#[derive(Debug)]
struct Budget(Instant);

impl Budget {
    fn is_due(&self) -> bool {
        Instant::now() >= self.0
    }

    fn spend(&mut self, pause: Duration, work: impl FnOnce()) {
        let before = processor_time();
        work();
        let cost = processor_time().saturating_sub(before);
        self.0 = Instant::now() + pause.max(cost.saturating_mul(SHARE));
    }
}

/// Of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds)
        + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default())
}

impl TimeSampler {
    /// For a program that starts now. The first sample is taken `after` that: a short program pays nothing.
    #[must_use]
    pub fn begin(after: Duration) -> TimeSampler {
        let began = Instant::now();
        TimeSampler {
            began,
            find: Budget(began + after),
            look: Budget(began + after),
            random: u64::from(std::process::id()) | 1,
            account: TimeAccount::default(),
            processes: BTreeMap::new(),
            looked: None,
            kept: 0,
            peers: BTreeMap::new(),
            ended_cpu_ns: 0,
        }
    }

    /// Takes a sample of the program whose first process is `leader` where it is time for one. Call it every few
    /// milliseconds.
    pub fn tick(&mut self, proc: &Path, leader: u32) {
        if self.find.is_due() {
            let mut find = Budget(self.began);
            find.spend(PAUSE, || self.find(proc, leader));
            self.find = find;
        }
        if self.look.is_due() {
            let pause = self.pause();
            let mut look = Budget(self.began);
            look.spend(pause, || self.look(proc));
            self.look = look;
        }
    }

    /// xorshift64: which moments are looked at has nothing to do with the program.
    fn pause(&mut self) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = u32::try_from(self.random % 1000).unwrap_or_default();
        PAUSE / 2 + PAUSE * share / 1000
    }

    /// Finds the leader, what descends from it or from what was seen, and their new threads.
    fn find(&mut self, proc: &Path, leader: u32) {
        let now = Instant::now();
        let mut found: BTreeSet<u32> = self.processes.keys().copied().chain([leader]).collect();
        let mut next: Vec<u32> = found.iter().copied().collect();
        while let Some(pid) = next.pop() {
            let task = at(proc, pid).join("task");
            for tid in numbers(&task) {
                let children = fs::read_to_string(task.join(tid.to_string()).join("children"));
                let children = children.unwrap_or_default();
                let children = children
                    .split_ascii_whitespace()
                    .filter_map(|pid| pid.parse().ok());
                next.extend(children.filter(|pid| found.insert(*pid)));
                self.find_thread(
                    proc,
                    pid,
                    tid,
                    (pid == leader && tid == leader).then_some(self.began),
                    now,
                );
            }
            // It may have executed another since.
            if let Some(process) = self.processes.get_mut(&pid)
                && let Some(executable) = executable_of(proc, pid)
            {
                process.executable = executable;
            }
        }
    }

    /// `born`: when its life began, where that is known better than the kernel tells.
    fn find_thread(
        &mut self,
        proc: &Path,
        pid: u32,
        tid: u32,
        born: Option<Instant>,
        now: Instant,
    ) {
        let is_known = |process: &Process| process.threads.contains_key(&tid);
        if self.processes.get(&pid).is_some_and(is_known) || is_guardian(proc, pid) {
            return;
        }
        let keep = self.kept < MOST_KEPT;
        let Some(thread) = Thread::open(proc, pid, tid, born, now, keep) else {
            return;
        };
        self.kept += usize::from(keep);
        let account = &mut self.account;
        account.threads += 1;
        let process = self.processes.entry(pid).or_insert_with(|| {
            account.processes += 1;
            Process {
                executable: String::new(),
                threads: BTreeMap::new(),
            }
        });
        process.threads.insert(tid, thread);
    }

    fn look(&mut self, proc: &Path) {
        self.account.samples += 1;
        let before = self.looked.replace(Instant::now());
        let pause = before.map_or(Duration::ZERO, |before| before.elapsed());
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.account.longest_pause_ns = self.account.longest_pause_ns.max(pause);
        let (account, peers) = (&mut self.account, &mut self.peers);
        let (kept, ended) = (&mut self.kept, &mut self.ended_cpu_ns);
        self.processes.retain(|pid, process| {
            let executable = &process.executable;
            process.threads.retain(|_, thread| {
                let now = Instant::now();
                let lives = thread.look(proc, *pid, now);
                if !lives {
                    thread.end_before(now);
                    *ended += thread.cpu_ns();
                    *kept -= usize::from(thread.is_kept());
                    book(account, peers, executable, thread);
                }
                lives
            });
            !process.threads.is_empty()
        });
    }

    /// What was seen, of a program that has ended after `wall`. `cpu_ns`: all processor time of it and of what it waited
    /// for (wait4(2)). `None` where it ended before the first sample.
    #[must_use]
    pub fn finish(mut self, wall: Duration, cpu_ns: u64) -> Option<TimeAccount> {
        let end = self.began + wall;
        let all = self
            .processes
            .values_mut()
            .flat_map(|process| process.threads.values_mut());
        let seen: u64 = all.map(|thread| thread.cpu_ns()).sum();
        let mut unseen = cpu_ns
            .saturating_sub(self.ended_cpu_ns)
            .saturating_sub(seen);
        for process in self.processes.values_mut() {
            for thread in process.threads.values_mut() {
                // What it did after it was last looked at.
                unseen -= thread.end(end, unseen);
                book(
                    &mut self.account,
                    &mut self.peers,
                    &process.executable,
                    thread,
                );
            }
        }
        self.account.unseen_cpu_ns = unseen;
        self.account.peers = largest(self.peers);
        (self.account.samples > 0 && self.account.threads > 0).then_some(self.account)
    }
}

fn book(
    account: &mut TimeAccount,
    peers: &mut BTreeMap<String, u64>,
    executable: &str,
    thread: &Thread,
) {
    account.thread_ns += thread.life_ns();
    let all = account
        .executables
        .entry(executable.to_owned())
        .or_default();
    for (activity, ns) in thread.parts() {
        *all.entry(activity).or_default() += ns;
    }
    for (peer, ns) in thread.peers() {
        *peers.entry(peer).or_default() += ns;
    }
}

fn largest(peers: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut all: Vec<(String, u64)> = peers.into_iter().filter(|(_, ns)| *ns > 0).collect();
    all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let others: u64 = all.iter().skip(MOST_PEERS).map(|(_, ns)| ns).sum();
    all.truncate(MOST_PEERS);
    if others > 0 {
        all.push(("others".to_owned(), others));
    }
    all.into_iter().collect()
}

/// The names of a directory's entries that are numbers.
fn numbers(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
