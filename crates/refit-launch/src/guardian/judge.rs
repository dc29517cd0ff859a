//! What becomes of a call. Whatever is not certain is the kernel's.

use refit_preload::session::{Knob, Policy};

use super::filesystems::Filesystems;
use super::look::{self, OpenFile};
use super::rules::Rules;
use super::tally::Fate;
use crate::filter::{Call, SYNC_BITS};
use crate::sys::area::Shared;
use crate::sys::notify::{Answer, Notification};

use std::sync::atomic::Ordering::Relaxed;

/// Decides calls by the policy.
pub struct Judge<'a> {
    rules: Rules<'a>,
    shared: &'a Shared,
    filesystems: Filesystems,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To say this now.
    Now(Answer, Fate),
    /// As [`Answer::Continue`], of what is only noted.
    Unnoticed,
}

/// The kernel does it.
const REAL: Verdict = Verdict::Now(Answer::Continue, Fate::Real);
const SUPPRESSED: Verdict = Verdict::Now(Answer::Success, Fate::Suppressed);

/// sync_file_range(2): the flags that there are.
const RANGE_FLAGS: u64 = 7;

/// Number of a call among the counters ([`refit_preload::session::CALLS`]).
pub fn counter_of(call: Call) -> Option<usize> {
    Some(match call {
        Call::Fsync => 0,
        Call::Fdatasync => 1,
        Call::Sync => 2,
        Call::Syncfs => 3,
        Call::SyncFileRange => 4,
        Call::Msync => 5,
        Call::Open | Call::Openat | Call::Openat2 => 6,
        Call::Pwritev2 => 7,
        Call::IoUringSetup => 12,
        Call::Seccomp | Call::Landlock => return None,
    })
}

impl Judge<'_> {
    /// By this policy.
    pub fn new<'a>(policy: &Policy, shared: &'a Shared) -> Judge<'a> {
        Judge {
            rules: Rules::new(&policy.rules, &shared.matched),
            shared,
            filesystems: Filesystems::default(),
        }
    }

    /// What becomes of a call of this executable (a path; `None`: unknown).
    pub fn verdict(&mut self, call: Call, asked: &Notification, exe: Option<&[u8]>) -> Verdict {
        let exe = exe.map(look::basename);
        match (call, exe) {
            (Call::Seccomp, _) => {
                self.shared.listeners_refused.fetch_add(1, Relaxed);
                Verdict::Unnoticed
            }
            (Call::Landlock, _) => {
                self.shared.landlocked.store(1, Relaxed);
                Verdict::Unnoticed
            }
            (_, None) => REAL,
            (Call::Fsync | Call::Fdatasync, Some(exe)) => self.of_file(asked, exe),
            (Call::SyncFileRange, Some(exe)) => self.of_range(asked, exe),
            (Call::Sync, Some(exe)) => self.of_all(exe),
            (Call::Syncfs, Some(exe)) => match OpenFile::of(asked.tid, fd(asked)) {
                Some(_) => self.of_all(exe),
                None => REAL,
            },
            (_, Some(_)) => REAL,
        }
    }

    /// Whether a sync of this file is off; of one that nobody can tell it is not.
    fn is_off(&self, asked: &Notification, exe: &[u8], file: &OpenFile) -> bool {
        if !self.rules.by_path(Knob::Sync, exe) {
            return self.rules.swapped(Knob::Sync, exe, None);
        }
        let path = look::shares_mounts(asked.tid)
            .then(|| file.path())
            .flatten();
        match path {
            Some(path) => self.rules.swapped(Knob::Sync, exe, Some(&path)),
            None => {
                self.shared.path_unknown.fetch_add(1, Relaxed);
                false
            }
        }
    }

    fn of_file(&mut self, asked: &Notification, exe: &[u8]) -> Verdict {
        let Some(file) = OpenFile::of(asked.tid, fd(asked)) else {
            return REAL;
        };
        let succeeds = file.is_file() && self.filesystems.sync_files(file.device, asked.tid);
        if succeeds && self.is_off(asked, exe, &file) {
            SUPPRESSED
        } else {
            REAL
        }
    }

    fn of_range(&mut self, asked: &Notification, exe: &[u8]) -> Verdict {
        let [_, offset, length, flags, ..] = asked.args;
        let end = offset.checked_add(length);
        // What it refuses, the kernel refuses by itself; on i386 the numbers lie
        // elsewhere.
        let fits = end.is_some_and(|end| end <= i64::MAX as u64);
        if asked.arch == crate::filter::AUDIT_ARCH_I386 {
            return self.of_narrow_range(asked, exe);
        }
        if !fits || flags & u64::from(u32::MAX) > RANGE_FLAGS {
            return REAL;
        }
        self.of_file(asked, exe)
    }

    fn of_narrow_range(&mut self, asked: &Notification, exe: &[u8]) -> Verdict {
        let join = |low: usize| asked.args[low] & 0xffff_ffff | asked.args[low + 1] << 32;
        let wide = Notification {
            arch: crate::filter::AUDIT_ARCH_X86_64,
            args: [asked.args[0], join(1), join(3), asked.args[5], 0, 0],
            ..*asked
        };
        self.of_range(&wide, exe)
    }

    /// Of what covers files in and out of any scope of paths.
    fn of_all(&self, exe: &[u8]) -> Verdict {
        if !self.rules.by_path(Knob::Sync, exe) && self.rules.swapped(Knob::Sync, exe, None) {
            SUPPRESSED
        } else {
            REAL
        }
    }
}

fn fd(asked: &Notification) -> i32 {
    asked.args[0] as i32
}

/// Whether these flags of an open ask for synchronous writes.
pub fn opens_sync(flags: u32) -> bool {
    flags & SYNC_BITS != 0 && flags & libc::O_PATH.cast_unsigned() == 0
}
