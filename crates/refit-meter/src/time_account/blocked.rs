//! What a blocked thread waits for: the system call that it is in, and the descriptor that the call is about.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::descriptor::{Descriptor, Memory, epoll_members, kind_of};
use crate::arch::{self, DescriptorWait};

/// What a thread does, or is blocked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// On a processor.
    Cpu,
    /// Ready to run, with no processor for it.
    Runnable,
    /// A call that makes data durable: fsync(2), msync(2) and their kin.
    Sync,
    /// Reading from a file, and page faults that read from one.
    Read,
    /// Writing to a file.
    Write,
    /// Opening, making, renaming and removing files.
    Files,
    /// Another machine, or a process at the other end of an Internet socket of this one.
    Network,
    /// A pipe, a local socket, a terminal.
    Pipe,
    /// A mutex, or a lock on a file.
    Lock,
    /// Another thread: a condition, a semaphore, its end.
    Thread,
    /// A process that it started.
    Child,
    /// A point in time: sleep(3) and its kin.
    Timer,
    /// Anybody who wants something: a server without a request.
    Idle,
    /// Another call.
    Other,
    /// Not known: no sample saw it blocked, or the kernel does not tell.
    Unknown,
}

/// What a sample found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub activity: Activity,
    /// The address and port that a network is waited for; `None` of everything else.
    pub peer: Option<String>,
}

impl Seen {
    pub fn of(activity: Activity) -> Seen {
        Seen {
            activity,
            peer: None,
        }
    }
}

/// What the text of /proc/PID/task/TID/syscall (proc_pid_syscall(5)) says; `None`: it runs, or it is none of the kernel's.
pub fn activity(proc: &Path, pid: u32, text: &str) -> Option<Seen> {
    let mut words = text.split_ascii_whitespace();
    let number: i64 = match words.next()? {
        "running" => return None,
        number => number.parse().ok()?,
    };
    // Blocked, and in no system call: a page fault.
    if number < 0 {
        return Some(Seen::of(Activity::Read));
    }
    let arguments: Vec<u64> = words
        .filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let argument = |n: usize| arguments.get(n).copied().unwrap_or_default();
    let of_descriptor = |file| of_one(&kind_of(proc, pid, argument(0)), file);
    Some(match number {
        libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_sync
        | libc::SYS_syncfs
        | libc::SYS_sync_file_range
        | libc::SYS_msync => Seen::of(Activity::Sync),
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect
        | libc::SYS_getdents64 => of_descriptor(Activity::Read),
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_ftruncate
        | libc::SYS_fallocate => of_descriptor(Activity::Write),
        libc::SYS_sendfile | libc::SYS_splice | libc::SYS_copy_file_range => {
            of_descriptor(Activity::Write)
        }
        libc::SYS_io_getevents | libc::SYS_io_submit | libc::SYS_io_uring_enter => {
            Seen::of(Activity::Other)
        }
        libc::SYS_futex => Seen::of(of_futex(argument(1))),
        libc::SYS_flock => Seen::of(Activity::Lock),
        // F_SETLKW and F_OFD_SETLKW are all of it that blocks.
        libc::SYS_fcntl => Seen::of(Activity::Lock),
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_clone | libc::SYS_clone3 => {
            Seen::of(Activity::Child)
        }
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Seen::of(Activity::Timer),
        libc::SYS_rt_sigtimedwait | libc::SYS_rt_sigsuspend => Seen::of(Activity::Idle),
        libc::SYS_ppoll => of_poll(proc, pid, argument(0), argument(1)),
        libc::SYS_pselect6 => of_select(proc, pid, [argument(0), argument(1), argument(2)]),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => of_epoll(proc, pid, argument(0)),
        libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_unlinkat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_mkdirat
        | libc::SYS_linkat
        | libc::SYS_symlinkat
        | libc::SYS_truncate
        | libc::SYS_execve
        | libc::SYS_close
        | libc::SYS_faccessat
        | libc::SYS_readlinkat => Seen::of(Activity::Files),
        _ if arch::FILE_CALLS.contains(&number) => Seen::of(Activity::Files),
        _ if arch::FORK_CALLS.contains(&number) => Seen::of(Activity::Child),
        _ if arch::PAUSE_CALLS.contains(&number) => Seen::of(Activity::Idle),
        _ => match arch::poll_call(number) {
            Some(DescriptorWait::Poll) => of_poll(proc, pid, argument(0), argument(1)),
            Some(DescriptorWait::Select) => {
                of_select(proc, pid, [argument(0), argument(1), argument(2)])
            }
            Some(DescriptorWait::Epoll) => of_epoll(proc, pid, argument(0)),
            None => Seen::of(Activity::Other),
        },
    })
}

/// FUTEX_WAIT is what mutexes are made of, and FUTEX_WAIT_BITSET, with a time, is what conditions, semaphores and joins
/// are (glibc, sysdeps/nptl/futex-internal.h: __futex_abstimed_wait_common).
fn of_futex(operation: u64) -> Activity {
    const COMMAND: u64 = 0x7f;
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const LOCK_PI2: u64 = 13;
    match operation & COMMAND {
        WAIT | LOCK_PI | LOCK_PI2 => Activity::Lock,
        _ => Activity::Thread,
    }
}

/// `file`: what a call does with one.
fn of_one(descriptor: &Descriptor, file: Activity) -> Seen {
    match descriptor {
        Descriptor::File => Seen::of(file),
        Descriptor::Connected(peer) => Seen {
            activity: Activity::Network,
            peer: Some(peer.clone()),
        },
        Descriptor::Internet => Seen::of(Activity::Network),
        Descriptor::Listening | Descriptor::Signals => Seen::of(Activity::Idle),
        Descriptor::Local => Seen::of(Activity::Pipe),
        Descriptor::Event => Seen::of(Activity::Thread),
        Descriptor::Timer => Seen::of(Activity::Timer),
        Descriptor::Unknown => Seen::of(Activity::Unknown),
    }
}

/// Of several, what most likely ends the wait: a connection, then a pipe or local socket, then another thread.
fn of_several(descriptors: &[Descriptor]) -> Seen {
    let rank = |descriptor: &&Descriptor| match descriptor {
        Descriptor::Connected(_) => 0,
        Descriptor::Internet => 1,
        Descriptor::Local => 2,
        Descriptor::Unknown => 3,
        Descriptor::Listening | Descriptor::Signals => 4,
        Descriptor::Event => 5,
        Descriptor::Timer | Descriptor::File => 6,
    };
    let first = descriptors.iter().min_by_key(rank);
    first.map_or(Seen::of(Activity::Timer), |first| {
        of_one(first, Activity::Other)
    })
}

/// More descriptors than these are not looked at: it is a server.
const MOST: u64 = 64;

/// The array of poll(2): for each an int and two shorts.
fn of_poll(proc: &Path, pid: u32, array: u64, count: u64) -> Seen {
    if count > MOST {
        return Seen::of(Activity::Idle);
    }
    let length = usize::try_from(count * 8).unwrap_or_default();
    let Some(bytes) = Memory::of(proc, pid).read(array, length) else {
        return Seen::of(Activity::Unknown);
    };
    let descriptors = bytes.chunks_exact(8).filter_map(|entry| {
        let number = i32::from_ne_bytes(entry[..4].try_into().ok()?);
        u64::try_from(number).ok()
    });
    let descriptors: Vec<Descriptor> = descriptors
        .map(|number| kind_of(proc, pid, number))
        .collect();
    of_several(&descriptors)
}

/// The sets of select(2): a bit for each number, in words of 8 bytes.
fn of_select(proc: &Path, pid: u32, [count, read, write]: [u64; 3]) -> Seen {
    let length = usize::try_from(count.min(1024).div_ceil(64) * 8).unwrap_or_default();
    let memory = Memory::of(proc, pid);
    let mut numbers = Vec::new();
    for set in [read, write] {
        if set == 0 || length == 0 {
            continue;
        }
        let Some(bytes) = memory.read(set, length) else {
            return Seen::of(Activity::Unknown);
        };
        let words = bytes
            .chunks_exact(8)
            .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
        for (word, base) in words.zip((0_u64..).step_by(64)) {
            numbers.extend(
                (0..64)
                    .filter(|bit| word & (1 << bit) != 0)
                    .map(|bit| base + bit),
            );
        }
    }
    let descriptors = numbers
        .into_iter()
        .take(64)
        .map(|number| kind_of(proc, pid, number));
    of_several(&descriptors.collect::<Vec<_>>())
}

fn of_epoll(proc: &Path, pid: u32, epoll: u64) -> Seen {
    let Some(members) = epoll_members(proc, pid, epoll) else {
        return Seen::of(Activity::Unknown);
    };
    if members.len() as u64 > MOST {
        return Seen::of(Activity::Idle);
    }
    let descriptors = members.into_iter().map(|number| kind_of(proc, pid, number));
    let descriptors: Vec<Descriptor> = descriptors.collect();
    match descriptors.is_empty() {
        true => Seen::of(Activity::Idle),
        false => of_several(&descriptors),
    }
}
