//! The decision about a call. Whatever is not certain goes to the kernel.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use refit_session::{CountedCall, EventRing, Knob, Policy, now_ns};

use super::filesystems::Filesystems;
use super::look::{OpenFile, Thread};
use super::maps;
use super::memory::GuardianMemory;
use super::request::Request;
use super::rules::Rules;
use super::tally::Outcome;
use crate::arch::{COMPAT, NATIVE};
use crate::filter::Call;
use crate::sys::disk::EmulatedDisk;
use crate::sys::notify::{Answer, Notification};

/// What a guardian decides with.
#[derive(Clone, Copy)]
pub struct Configuration<'a> {
    /// The settings.
    pub policy: &'a Policy,
    /// What the emulated disk remembers, and traced calls.
    pub ring: Option<&'a EventRing>,
}

/// Decides calls by the policy.
pub struct Decider<'a> {
    /// Its rules.
    pub rules: Rules<'a>,
    /// What is known of devices.
    pub filesystems: Filesystems,
    memory: &'a GuardianMemory,
    disk: Option<(EmulatedDisk, &'a EventRing)>,
    /// The device of "/".
    root: u64,
}

/// What to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Answer it now.
    Now(Answer, Outcome),
    /// Pass it to the kernel at this time (CLOCK_MONOTONIC).
    Hold {
        /// Nanoseconds.
        until_ns: u64,
    },
    /// Open the file without O_SYNC.
    Open,
}

impl Decision {
    /// For another process of the guardian's; an open is not one of these.
    pub fn words(self) -> [u64; 2] {
        match self {
            Decision::Now(_, Outcome::Real) | Decision::Open => [1, 0],
            Decision::Now(Answer::Error(errno), _) => [2, u64::from(errno.cast_unsigned())],
            Decision::Now(..) => [3, 0],
            Decision::Hold { until_ns } => [4, until_ns],
        }
    }

    /// The reverse; `None` for others.
    pub fn of_words([what, value]: [u64; 2]) -> Option<Decision> {
        match what {
            1 => Some(REAL),
            2 => Some(Decision::Now(
                Answer::Error(value as i32),
                Outcome::Injected,
            )),
            3 => Some(SUPPRESSED),
            4 => Some(Decision::Hold { until_ns: value }),
            _ => None,
        }
    }
}

/// The kernel does it.
const REAL: Decision = Decision::Now(Answer::Continue, Outcome::Real);
const SUPPRESSED: Decision = Decision::Now(Answer::Value(0), Outcome::Suppressed);

/// All flags of sync_file_range(2).
const RANGE_FLAGS: u64 = 7;

/// The low half of an argument: an int.
const INT: u64 = 0xffff_ffff;

/// The counter of a call; `None` for a call that does not wait for durability.
pub fn counter_of(call: Call) -> Option<CountedCall> {
    Some(match call {
        Call::Fsync => CountedCall::Fsync,
        Call::Fdatasync => CountedCall::Fdatasync,
        Call::Sync => CountedCall::Sync,
        Call::Syncfs => CountedCall::Syncfs,
        Call::SyncFileRange => CountedCall::SyncFileRange,
        Call::Msync => CountedCall::Msync,
        Call::Open | Call::Openat | Call::Openat2 => CountedCall::OpenSync,
        Call::Pwritev2 => CountedCall::Pwritev2,
        Call::IoUringSetup => CountedCall::IoUringSetup,
        Call::Seccomp | Call::Landlock => return None,
    })
}

impl<'a> Decider<'a> {
    /// With this configuration.
    pub fn new(configuration: Configuration<'a>, memory: &'a GuardianMemory) -> Decider<'a> {
        let disk = configuration
            .policy
            .disk
            .is_some()
            .then_some(configuration.ring);
        Decider {
            rules: Rules::new(&configuration.policy.rules, &memory.tally.matched),
            filesystems: Filesystems::default(),
            memory,
            root: configuration.policy.root.0,
            disk: disk
                .flatten()
                .map(|ring| (EmulatedDisk::new(&configuration.policy.disk_bytes()), ring)),
        }
    }

    /// Notes a call that is not counted.
    pub fn note(&self, call: Call, notification: &Notification) {
        match call {
            // Without a filter: a question whether the kernel knows the flag, as libseccomp asks. It fails with EFAULT.
            Call::Seccomp if notification.args[2] == 0 => {}
            Call::Seccomp => {
                self.memory.tally.listeners_refused.fetch_add(1, Relaxed);
            }
            Call::Landlock => self.memory.landlocked.store(1, Relaxed),
            _ => {}
        }
    }

    /// The decision about a call of this executable (a basename), other than an open
    /// or an msync.
    pub fn of_call(
        &mut self,
        call: Call,
        notification: &Notification,
        thread: &Thread,
        exe: &[u8],
    ) -> Decision {
        match call {
            Call::Fsync | Call::Fdatasync => self.of_file(notification, thread, exe, true),
            Call::SyncFileRange => self.of_range(notification, thread, exe),
            Call::Sync => self.of_all(exe, None),
            Call::Syncfs => match OpenFile::of(thread, notification.args[0] as i32) {
                Some(file) => self.of_all(exe, Some(file.device)),
                None => REAL,
            },
            Call::Pwritev2 => {
                // The guardian cannot write the data for the program.
                self.pass_disk_by(exe);
                REAL
            }
            _ => REAL,
        }
    }

    /// The decision about an open with O_SYNC or O_DSYNC.
    pub fn of_open(&self, request: &Request, notification: &Notification, exe: &[u8]) -> Decision {
        // Landlock restrictions of a program cannot be seen from outside.
        let restricted = self.memory.landlocked.load(Relaxed) != 0;
        if self.by_path(exe) || self.rules.swapped(Knob::Sync, exe, None) {
            if !restricted && request.is_plain(notification.arch) {
                return Decision::Open;
            }
            self.memory.tally.left_synchronous.fetch_add(1, Relaxed);
        }
        self.pass_disk_by(exe);
        REAL
    }

    fn pass_disk_by(&self, exe: &[u8]) {
        if self.rules.swapped(Knob::Disk, exe, None) {
            self.memory.tally.not_delayed.fetch_add(1, Relaxed);
        }
    }

    fn by_path(&self, exe: &[u8]) -> bool {
        self.rules.by_path(Knob::Sync, exe) || self.rules.by_path(Knob::Disk, exe)
    }

    /// `flushes`: it reaches the device, and so the emulated one.
    fn of_file(
        &mut self,
        notification: &Notification,
        thread: &Thread,
        exe: &[u8],
        flushes: bool,
    ) -> Decision {
        let Some(file) = OpenFile::of(thread, notification.args[0] as i32) else {
            return REAL;
        };
        let succeeds = file.is_file() && self.filesystems.sync_files(file.device, thread.tid);
        if !succeeds {
            return REAL;
        }
        let path = if self.by_path(exe) {
            let path = thread.shares_mounts().then(|| file.path());
            let Some(path) = path.flatten() else {
                self.memory.tally.path_unknown.fetch_add(1, Relaxed);
                return self.real(exe, None, Some(file.device), flushes);
            };
            Some(path)
        } else {
            None
        };
        if self.rules.swapped(Knob::Sync, exe, path.as_deref()) {
            SUPPRESSED
        } else {
            self.real(exe, path.as_deref(), Some(file.device), flushes)
        }
    }

    fn of_range(&mut self, notification: &Notification, thread: &Thread, exe: &[u8]) -> Decision {
        let arguments = notification.args;
        let calls = if notification.arch == COMPAT.audit {
            &COMPAT
        } else {
            &NATIVE
        };
        let wide = |first: usize| {
            if calls.is_narrow {
                arguments[first] & INT | arguments[first + 1] << 32
            } else {
                arguments[first]
            }
        };
        let (offset, length) = (wide(calls.range_offset), wide(calls.range_length));
        let flags = arguments[calls.range_flags];
        // Invalid arguments are refused by the kernel itself (fs/sync.c).
        let signed = |n: u64| i64::try_from(n).ok();
        let end = signed(offset).zip(signed(length));
        let fits = end.is_some_and(|(offset, length)| offset.checked_add(length).is_some());
        if !fits || flags & INT > RANGE_FLAGS {
            return REAL;
        }
        self.of_file(notification, thread, exe, false)
    }

    /// The decision about a call that covers files inside and outside of path scopes.
    fn of_all(&self, exe: &[u8], device: Option<u64>) -> Decision {
        if !self.by_path(exe) && self.rules.swapped(Knob::Sync, exe, None) {
            SUPPRESSED
        } else {
            self.real(exe, None, device, true)
        }
    }

    /// The decision about an msync. It can take for ever: see `reader.rs`.
    pub fn of_memory(
        &mut self,
        notification: &Notification,
        thread: &Thread,
        exe: &[u8],
    ) -> Decision {
        let [from, length, flags, ..] = notification.args;
        // Other flags (MS_INVALIDATE) can make it fail.
        if flags & INT != u64::from(libc::MS_SYNC.cast_unsigned()) {
            return REAL;
        }
        let (from, length) = if notification.arch == COMPAT.audit {
            (from & INT, length & INT)
        } else {
            (from, length)
        };
        let Some(files) = maps::shared_files(notification.tid, from, length) else {
            return REAL;
        };
        let by_path = self.by_path(exe);
        if by_path && !thread.shares_mounts() {
            self.memory.tally.path_unknown.fetch_add(1, Relaxed);
            return self.real(exe, None, None, true);
        }
        let off = |path: Option<&Path>| self.rules.swapped(Knob::Sync, exe, path);
        let is_off = if by_path {
            !files.is_empty() && files.iter().all(|file| off(Some(&file.path)))
        } else {
            off(None)
        };
        if is_off {
            return SUPPRESSED;
        }
        match files.first() {
            Some(file) => self.real(exe, by_path.then_some(&*file.path), Some(file.device), true),
            None => REAL,
        }
    }

    /// The decision about a real flush: the emulated disk may delay it, or fail it
    /// unless it is sync(2), which cannot fail.
    fn real(
        &self,
        exe: &[u8],
        path: Option<&Path>,
        device: Option<u64>,
        flushes: bool,
    ) -> Decision {
        let Some((disk, ring)) = self.disk.as_ref().filter(|_| flushes) else {
            return REAL;
        };
        if !self.rules.swapped(Knob::Disk, exe, path) {
            return REAL;
        }
        match device.map_or(0, |_| disk.fault(ring)) {
            0 => {}
            errno => return Decision::Now(Answer::Error(errno as i32), Outcome::Injected),
        }
        let now = now_ns();
        match disk.until(ring, device.unwrap_or(self.root), now) {
            until_ns if until_ns > now => Decision::Hold { until_ns },
            _ => REAL,
        }
    }
}
