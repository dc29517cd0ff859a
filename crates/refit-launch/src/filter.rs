//! The seccomp filter beneath a program, as instructions (seccomp(2)).
//!
//! It looks at the architecture, then at the number, and only then, for the few
//! calls that are ours, at arguments: so the kernel's table of actions that need
//! no look (Linux 5.11, kernel/seccomp.c) leaves all other calls as fast as they
//! were. Unknown calls are allowed: they are real.

use libc::sock_filter;
use refit_session::{COOKIE, FILTER_IS_THERE};
use rustix::param::page_size;

use crate::arch::{COMPAT, Calls, MMAP, NATIVE, OTHER_ABI};

/// How calls that wait for durability are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncs {
    /// By the kernel, with 0, without any effect.
    Succeed,
    /// By the guardian.
    Ask,
    /// They are real.
    Leave,
}

/// How io_uring_setup is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rings {
    /// It is real.
    Leave,
    /// ENOSYS: programs continue without an io_uring.
    Deny,
}

/// What a filter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// fsync and the like.
    pub syncs: Syncs,
    /// io_uring_setup.
    pub rings: Rings,
    /// There is a guardian: opens with O_SYNC, and calls that are only counted, go
    /// to it. Without one they are allowed.
    pub listened: bool,
}

/// The calls that a filter can send to the guardian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// fsync(2)
    Fsync,
    /// fdatasync(2)
    Fdatasync,
    /// sync(2)
    Sync,
    /// syncfs(2)
    Syncfs,
    /// sync_file_range(2)
    SyncFileRange,
    /// msync(2)
    Msync,
    /// open(2)
    Open,
    /// openat(2)
    Openat,
    /// openat2(2)
    Openat2,
    /// pwritev2(2)
    Pwritev2,
    /// io_uring_setup(2)
    IoUringSetup,
    /// seccomp(2), for a listener.
    Seccomp,
    /// landlock_restrict_self(2)
    Landlock,
}

/// The call of this number; `None` for one that no filter intercepts.
#[must_use]
pub fn call(arch: u32, number: u32) -> Option<Call> {
    let mut both = [&NATIVE, &COMPAT].into_iter();
    let calls = both.find(|calls| calls.audit == arch)?;
    let number = match OTHER_ABI {
        Some(other) if !calls.is_narrow => {
            if number == other.bit | other.pwritev2 {
                return Some(Call::Pwritev2);
            }
            number & !other.bit
        }
        _ => number,
    };
    if calls.open == Some(number) {
        return Some(Call::Open);
    }
    let table = [
        (calls.fsync, Call::Fsync),
        (calls.fdatasync, Call::Fdatasync),
        (calls.sync, Call::Sync),
        (calls.syncfs, Call::Syncfs),
        (calls.sync_file_range, Call::SyncFileRange),
        (calls.msync, Call::Msync),
        (calls.openat, Call::Openat),
        (calls.openat2, Call::Openat2),
        (calls.pwritev2, Call::Pwritev2),
        (calls.io_uring_setup, Call::IoUringSetup),
        (calls.seccomp, Call::Seccomp),
        (calls.landlock_restrict_self, Call::Landlock),
    ];
    let found = table.iter().find(|(known, _)| *known == number);
    found.map(|(_, call)| *call)
}

/// Both of O_SYNC's bits; O_DSYNC is one of them. The same in 32-bit programs.
pub const SYNC_BITS: u32 = (libc::O_SYNC | libc::O_DSYNC).cast_unsigned();
const PATH_BIT: u32 = libc::O_PATH.cast_unsigned();
const MSYNC_BIT: u32 = libc::MS_SYNC.cast_unsigned();
/// RWF_DSYNC | RWF_SYNC, pwritev2(2).
const RWF_SYNC_BITS: u32 = 6;
/// All flags of sync_file_range(2).
const RANGE_FLAGS: u32 = 7;
const NEGATIVE: u32 = 1 << 31;
const NEW_LISTENER: u32 = 8; // SECCOMP_FILTER_FLAG_NEW_LISTENER

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const SUCCEED: u32 = libc::SECCOMP_RET_ERRNO;
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const HAS_BITS: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const KEEP: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Offsets in struct seccomp_data (linux/seccomp.h); little-endian.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;

const fn low(arg: usize) -> u32 {
    16 + 8 * arg as u32
}

const fn high(arg: usize) -> u32 {
    low(arg) + 4
}

fn statement(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

/// `yes` and `no` are how many instructions are skipped.
fn jump(code: u32, k: u32, yes: u8, no: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    }
}

/// An instruction as the session page holds it.
#[must_use]
pub fn to_policy(instruction: sock_filter) -> u64 {
    let sock_filter { code, jt, jf, k } = instruction;
    u64::from(code) | u64::from(jt) << 16 | u64::from(jf) << 24 | u64::from(k) << 32
}

/// A block for one call. The accumulator holds the number; for another number the
/// block is skipped.
fn when(number: u32, block: Vec<sock_filter>) -> Vec<sock_filter> {
    let length = u8::try_from(block.len()).expect("blocks are short");
    [vec![jump(EQUAL, number, 0, length)], block].concat()
}

/// Allows calls that carry refit's cookie in its last register.
fn unless_cookie() -> Vec<sock_filter> {
    vec![
        statement(LOAD, low(5)),
        jump(EQUAL, COOKIE as u32, 0, 3),
        statement(LOAD, high(5)),
        jump(EQUAL, (COOKIE >> 32) as u32, 0, 1),
        statement(RETURN, ALLOW),
    ]
}

/// The answer to the question whether the filter is there: an mmap that fails
/// anyway, with refit's cookie as its offset.
fn presence() -> Vec<sock_filter> {
    let answer = vec![
        statement(LOAD, low(5)),
        jump(EQUAL, COOKIE as u32, 0, 3),
        statement(LOAD, high(5)),
        jump(EQUAL, (COOKIE >> 32) as u32, 0, 1),
        statement(RETURN, SUCCEED | FILTER_IS_THERE),
        statement(RETURN, ALLOW),
    ];
    when(MMAP, answer)
}

/// Allows calls with none of the bits in this argument.
fn only_with(arg: usize, bits: u32) -> Vec<sock_filter> {
    vec![
        statement(LOAD, low(arg)),
        jump(HAS_BITS, bits, 1, 0),
        statement(RETURN, ALLOW),
    ]
}

/// Allows calls with one of the bits in this argument.
fn unless(arg: usize, bits: u32) -> Vec<sock_filter> {
    unless_at(low(arg), bits)
}

/// The same, of a word at an offset.
fn unless_at(word: u32, bits: u32) -> Vec<sock_filter> {
    vec![
        statement(LOAD, word),
        jump(HAS_BITS, bits, 0, 1),
        statement(RETURN, ALLOW),
    ]
}

impl Filter {
    /// The instructions.
    #[must_use]
    pub fn instructions(&self) -> Vec<sock_filter> {
        let wide = self.of(&NATIVE, unless_cookie);
        let narrow = self.of(&COMPAT, Vec::new);
        let mut other_abi = Vec::new();
        if let Some(other) = OTHER_ABI {
            let writes = only_with(other.pwritev2_flags, RWF_SYNC_BITS);
            other_abi = self.ask(other.bit | other.pwritev2, writes);
            other_abi.push(statement(KEEP, !other.bit));
        }
        let presence = if self.listened {
            Vec::new()
        } else {
            presence()
        };
        let first = other_abi.len() + 1 + presence.len() + wide.len();
        let first = u8::try_from(first).expect("a jump reaches that far");
        let mut all = vec![statement(LOAD, ARCH)];
        all.push(jump(EQUAL, COMPAT.audit, 0, narrow.len() as u8 + 1));
        assert!(narrow.len() < 255, "a jump reaches that far");
        all.push(statement(LOAD, NUMBER));
        all.extend(narrow);
        all.push(jump(EQUAL, NATIVE.audit, 0, first));
        all.push(statement(LOAD, NUMBER));
        all.extend(other_abi);
        all.extend(presence);
        all.extend(wide);
        all.push(statement(RETURN, ALLOW));
        all
    }

    /// Ends with a return for every number.
    fn of(&self, calls: &Calls, unless_ours: fn() -> Vec<sock_filter>) -> Vec<sock_filter> {
        let mut all = Vec::new();
        let syncs = match self.syncs {
            Syncs::Succeed => SUCCEED,
            Syncs::Ask => ASK,
            Syncs::Leave => ALLOW,
        };
        let of_file = || [unless_ours(), unless(0, NEGATIVE)].concat();
        // Arguments that the kernel would refuse are left to it, as far as they can be
        // seen here.
        let upper = |arg| {
            if calls.is_narrow {
                low(arg + 1)
            } else {
                high(arg)
            }
        };
        let ranges = [
            only_with(calls.range_flags, u32::MAX),
            unless(calls.range_flags, !RANGE_FLAGS),
            unless_at(upper(calls.range_offset), NEGATIVE),
            unless_at(upper(calls.range_length), NEGATIVE),
        ]
        .concat();
        let mappings = [
            unless_ours(),
            only_with(2, MSYNC_BIT),
            unless(2, !(MSYNC_BIT | libc::MS_INVALIDATE.cast_unsigned())),
            unless(0, page_size() as u32 - 1),
        ]
        .concat();
        for (number, checks) in [
            (calls.fsync, of_file()),
            (calls.fdatasync, of_file()),
            (calls.syncfs, of_file()),
            (calls.sync, unless_ours()),
            (calls.sync_file_range, [of_file(), ranges].concat()),
            (calls.msync, mappings),
        ] {
            all.extend(when(
                number,
                [checks, vec![statement(RETURN, syncs)]].concat(),
            ));
        }
        let opens = calls.open.map(|open| (open, 1));
        for (number, flags) in opens.into_iter().chain([(calls.openat, 2)]) {
            let checks = [only_with(flags, SYNC_BITS), unless(flags, PATH_BIT)].concat();
            all.extend(self.ask(number, checks));
        }
        // Its flags are in memory: the preload or the guardian reads them.
        all.extend(self.ask(calls.openat2, unless_ours()));
        all.extend(self.ask(calls.pwritev2, only_with(5, RWF_SYNC_BITS)));
        if self.rings == Rings::Deny {
            let no_such_call = SUCCEED | libc::ENOSYS.cast_unsigned();
            let deny = vec![statement(RETURN, no_such_call)];
            all.extend(when(calls.io_uring_setup, deny));
        } else {
            all.extend(self.ask(calls.io_uring_setup, Vec::new()));
        }
        // Two calls that the guardian only notes.
        all.extend(self.ask(calls.seccomp, only_with(1, NEW_LISTENER)));
        all.extend(self.ask(calls.landlock_restrict_self, Vec::new()));
        all.push(statement(RETURN, ALLOW));
        all
    }

    /// A block that sends a call to the guardian; none without a guardian.
    fn ask(&self, number: u32, checks: Vec<sock_filter>) -> Vec<sock_filter> {
        if self.listened {
            when(number, [checks, vec![statement(RETURN, ASK)]].concat())
        } else {
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
