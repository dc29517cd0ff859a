//! How a program ended, and what it took.

use std::mem::zeroed;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::spawner::SPAWNER_PEAK_KIB;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Signaled(i32),
}

/// What a program and all that it waited for took (wait4(2)).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Processor time in the programs, as the kernel's ticks divided it: an estimate, which is all
    /// or nothing in a run of one tick (kernel/sched/cputime.c, `cputime_adjust`).
    pub user_ns: u64,
    /// Processor time in the kernel, likewise.
    pub system_ns: u64,
    /// Resident memory of the *largest* process at its peak; not a sum. The kernel
    /// counts what the image before had in memory at the exec (exec_mmap in
    /// fs/exec.c): the spawner's few pages where the run was measured, else refit's
    /// own. What is not above that is not known: `None`.
    pub max_rss_bytes: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// The program waited for something.
    pub voluntary_switches: u64,
    /// The kernel took the processor away.
    pub involuntary_switches: u64,
    /// Bytes that were to be written to a disk (ru_oublock × 512).
    pub written_bytes: u64,
}

impl Usage {
    /// Processor time, in nanoseconds. The kernel measures this sum; it only estimates the halves.
    #[must_use]
    pub fn processor_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// In programs, and in the kernel; `None` where there were too few ticks to tell.
    #[must_use]
    pub fn halves(&self) -> Option<[u64; 2]> {
        (self.processor_ns() >= DIVIDED_FROM_NS).then_some([self.user_ns, self.system_ns])
    }
}

/// Processor time in nanoseconds of which the kernel knows the halves. It measures the sum, and
/// divides it as its ticks fell (kernel/sched/cputime.c, `cputime_adjust`): a run of one tick is all
/// `user` or all `system`. This is 10 ticks of the slowest clock that Linux has, CONFIG_HZ_100.
const DIVIDED_FROM_NS: u64 = 100_000_000;

/// A program that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How.
    pub end: End,
    /// From its start to its end.
    pub wall: Duration,
    /// What it took.
    pub usage: Usage,
    /// It was killed because its time was over.
    pub timed_out: bool,
}

/// What wait4(2) tells of a child.
pub(super) enum Change {
    Ended(End, Usage),
    Stopped(i32),
}

fn own_peak_kib() -> libc::c_long {
    // SAFETY: all zeros is a rusage, which the call fills.
    unsafe {
        let mut own: libc::rusage = zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut own);
        own.ru_maxrss
    }
}

fn usage(raw: &libc::rusage, spawned: bool) -> Usage {
    let before_kib = match spawned {
        true => SPAWNER_PEAK_KIB,
        false => own_peak_kib(),
    };
    let nanoseconds = |t: libc::timeval| {
        t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_usec.unsigned_abs() * 1_000
    };
    Usage {
        user_ns: nanoseconds(raw.ru_utime),
        system_ns: nanoseconds(raw.ru_stime),
        max_rss_bytes: Some(raw.ru_maxrss)
            .filter(|kib| *kib > before_kib)
            .map(|kib| kib.unsigned_abs() * 1024),
        minor_faults: raw.ru_minflt.unsigned_abs(),
        major_faults: raw.ru_majflt.unsigned_abs(),
        voluntary_switches: raw.ru_nvcsw.unsigned_abs(),
        involuntary_switches: raw.ru_nivcsw.unsigned_abs(),
        written_bytes: raw.ru_oublock.unsigned_abs() * 512,
    }
}

/// `spawned`: the image before was the spawner's and not refit's.
pub(super) fn child_change(pid: libc::pid_t, spawned: bool) -> Option<Change> {
    let mut status = 0;
    loop {
        // SAFETY: all zeros is a rusage.
        let mut raw: libc::rusage = unsafe { zeroed() };
        // SAFETY: status and usage outlive the call.
        let got = unsafe {
            libc::wait4(
                pid,
                &raw mut status,
                libc::WNOHANG | libc::WUNTRACED,
                &raw mut raw,
            )
        };
        if got != pid {
            return None;
        }
        if libc::WIFEXITED(status) {
            return Some(Change::Ended(
                End::Exited(libc::WEXITSTATUS(status)),
                usage(&raw, spawned),
            ));
        }
        if libc::WIFSIGNALED(status) {
            return Some(Change::Ended(
                End::Signaled(libc::WTERMSIG(status)),
                usage(&raw, spawned),
            ));
        }
        if libc::WIFSTOPPED(status) {
            return Some(Change::Stopped(libc::WSTOPSIG(status)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_of_a_few_ticks_has_no_halves() {
        let mut usage = Usage {
            user_ns: 3_032_000,
            ..Usage::default()
        };
        assert_eq!(usage.halves(), None);
        usage.system_ns = DIVIDED_FROM_NS - usage.user_ns;
        assert_eq!(usage.halves(), Some([3_032_000, 96_968_000]));
    }
}
