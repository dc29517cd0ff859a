//! One thread: what the kernel counts of it, and the samples of what it was blocked on.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::blocked::{Activity, Seen, activity};
use crate::stat::Stat;
use crate::tree::at;

/// USER_HZ is 100 on x86-64 and arm64 (include/asm-generic/param.h).
const TICK: Duration = Duration::from_millis(10);

/// /proc/PID/task/TID/schedstat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    run_ns: u64,
    queued_ns: u64,
    /// How often it was put on a processor.
    slices: u64,
}

/// A file of a thread.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// Open, or to be opened for each look.
    kept: Option<File>,
}

impl Source {
    fn open(path: PathBuf, keep: bool) -> Source {
        let kept = keep.then(|| File::open(&path).ok()).flatten();
        Source { path, kept }
    }

    fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        match &self.kept {
            Some(file) => file.read_at(buffer, 0).ok(),
            None => File::open(&self.path).ok()?.read_at(buffer, 0).ok(),
        }
    }
}

#[derive(Debug)]
pub struct Thread {
    schedstat: Source,
    syscall: Source,
    born: Instant,
    last: Instant,
    counts: Counts,
    /// What it was blocked on when it was last looked at, if it was.
    blocked: Option<Seen>,
    /// How long it was seen to be blocked, on what.
    seen: BTreeMap<Seen, u64>,
    /// How long it was blocked since a sample last saw on what.
    unseen_ns: u64,
}

impl Thread {
    /// `born`: when its life began, where that is known better than the kernel tells.
    /// `keep`: its files stay open. `None`: it is gone.
    pub fn open(
        proc: &Path,
        pid: u32,
        tid: u32,
        born: Option<Instant>,
        now: Instant,
        keep: bool,
    ) -> Option<Thread> {
        let task = at(proc, pid).join("task").join(tid.to_string());
        let born = born.unwrap_or_else(|| {
            age(proc, &task)
                .and_then(|age| now.checked_sub(age))
                .unwrap_or(now)
        });
        let thread = Thread {
            schedstat: Source::open(task.join("schedstat"), keep),
            syscall: Source::open(task.join("syscall"), keep),
            born,
            last: born,
            counts: Counts::default(),
            blocked: None,
            seen: BTreeMap::new(),
            unseen_ns: 0,
        };
        thread.counts_now().is_some().then_some(thread)
    }

    /// Whether the files of this thread in /proc stay open between two looks.
    pub fn is_kept(&self) -> bool {
        self.schedstat.kept.is_some()
    }

    /// Reads what the thread did since the last look, and what it is blocked on now; `false` where it has ended.
    pub fn look(&mut self, proc: &Path, pid: u32, now: Instant) -> bool {
        let Some(counts) = self.counts_now() else {
            return false;
        };
        let has_run = counts.slices != self.counts.slices || counts.run_ns != self.counts.run_ns;
        let since = now.saturating_duration_since(self.last);
        let ran = counts.run_ns.saturating_sub(self.counts.run_ns);
        let queued = counts.queued_ns.saturating_sub(self.counts.queued_ns);
        self.last = now;
        self.counts = counts;
        // One that never ran is where it was.
        if has_run || self.blocked.is_none() {
            self.blocked = self.read_blocked(proc, pid);
        }
        let blocked_ns = nanoseconds(since)
            .saturating_sub(ran)
            .saturating_sub(queued);
        self.unseen_ns = self.unseen_ns.saturating_add(blocked_ns);
        if let Some(blocked) = &self.blocked {
            // Most samples miss short waits: the next one that sees one stands for those before it.
            *self.seen.entry(blocked.clone()).or_default() += self.unseen_ns;
            self.unseen_ns = 0;
        }
        true
    }

    fn counts_now(&self) -> Option<Counts> {
        let mut buffer = [0; 96];
        let length = self.schedstat.read(&mut buffer)?;
        let text = str::from_utf8(&buffer[..length]).ok()?;
        let mut fields = text.split_ascii_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Counts {
            run_ns: next()?,
            queued_ns: next()?,
            slices: next()?,
        })
    }

    /// `None`: it runs, or did so while it was looked at.
    fn read_blocked(&self, proc: &Path, pid: u32) -> Option<Seen> {
        let mut buffer = [0; 256];
        // Of a program with more rights than this one.
        let Some(length) = self.syscall.read(&mut buffer) else {
            return Some(Seen::of(Activity::Unknown));
        };
        let text = str::from_utf8(&buffer[..length]).ok()?;
        let seen = activity(proc, pid, text)?;
        (self.counts_now()? == self.counts).then_some(seen)
    }

    /// Its life ended then, or the account does. `cpu_ns`: how much processor time it may have had since it was last
    /// looked at; returns how much of that it had. While it did not run it was blocked as it was then.
    pub fn end(&mut self, at: Instant, cpu_ns: u64) -> u64 {
        let since = nanoseconds(at.saturating_duration_since(self.last));
        let ran = cpu_ns.min(since);
        self.counts.run_ns += ran;
        if let Some(blocked) = &self.blocked {
            *self.seen.entry(blocked.clone()).or_default() += since - ran;
        }
        self.last = self.last.max(at);
        ran
    }

    /// Its life ended between the last look and this moment: in the middle, as far as is known.
    pub fn end_before(&mut self, now: Instant) {
        let half = now.saturating_duration_since(self.last) / 2;
        self.end(self.last + half, 0);
    }

    pub fn cpu_ns(&self) -> u64 {
        self.counts.run_ns
    }

    pub fn life_ns(&self) -> u64 {
        nanoseconds(self.last.saturating_duration_since(self.born))
    }

    fn blocked_ns(&self) -> u64 {
        let awake = self.counts.run_ns.saturating_add(self.counts.queued_ns);
        self.life_ns().saturating_sub(awake)
    }

    /// What its life consisted of.
    pub fn parts(&self) -> Vec<(Activity, u64)> {
        let life = self.life_ns();
        let run = self.counts.run_ns.min(life);
        let queued = self.counts.queued_ns.min(life - run);
        let mut parts = vec![(Activity::Cpu, run), (Activity::Runnable, queued)];
        let mut left = life - run - queued;
        for (seen, ns) in self.shares() {
            let ns = ns.min(left);
            left -= ns;
            parts.push((seen.activity, ns));
        }
        // What rounding leaves, or all of it where no sample saw it blocked.
        let last = parts.last().map_or(Activity::Unknown, |(of, _)| *of);
        let is_rounding = left <= self.seen.len() as u64;
        parts.push((if is_rounding { last } else { Activity::Unknown }, left));
        parts.retain(|(_, ns)| *ns > 0);
        parts
    }

    pub fn peers(&self) -> Vec<(String, u64)> {
        self.shares()
            .filter_map(|(seen, ns)| Some((seen.peer.clone()?, ns)))
            .collect()
    }

    /// The blocked time, divided as the samples are; none where no sample saw it blocked.
    fn shares(&self) -> impl Iterator<Item = (&Seen, u64)> {
        let all: u128 = self.seen.values().map(|ns| u128::from(*ns)).sum();
        let blocked = u128::from(self.blocked_ns());
        self.seen.iter().map(move |(seen, ns)| {
            let share = u128::from(*ns) * blocked / all.max(1);
            (seen, u64::try_from(share).unwrap_or(u64::MAX))
        })
    }
}

/// How long a thread has lived, to a tick.
fn age(proc: &Path, task: &Path) -> Option<Duration> {
    let started = Stat::read(task)?.started;
    let uptime = std::fs::read_to_string(proc.join("uptime")).ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let uptime = Duration::try_from_secs_f64(uptime).ok()?;
    Some(uptime.saturating_sub(TICK.saturating_mul(u32::try_from(started).ok()?)))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
