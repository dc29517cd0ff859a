//! Perf events: opening and closing them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use libc::c_void;

use super::{checked, owned};

/// struct perf_event_attr of linux/perf_event.h, as far as Linux 4.1 knew it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const COUNT_SW_CPU_CLOCK: u64 = 0;
const COUNT_SW_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_RAW: u64 = 1 << 10;
const SAMPLE_REGS_USER: u64 = 1 << 12;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const FORMAT_LOST: u64 = 1 << 4;
const DISABLED: u64 = 1 << 0;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// _IO('$', 0), _IO('$', 1) and _IO('$', 5)
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;

/// What reading an event tells, the most first: kernels before Linux 6.0 that have not got
/// the number of lost records since refuse it (EINVAL).
const READ_FORMATS: [u64; 2] = [FORMAT_LOST, 0];

/// All processes of a processor.
const EVERYBODY: i32 = -1;

fn watch(process: i32, processor: i32, more: Attributes) -> io::Result<OwnedFd> {
    first_accepted(&READ_FORMATS, |format| {
        open(process, processor, &more, format)
    })
}

fn first_accepted<T>(formats: &[u64], open: impl Fn(u64) -> io::Result<T>) -> io::Result<T> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for format in formats {
        match open(*format) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            other => return other,
        }
    }
    Err(refused)
}

fn open(process: i32, processor: i32, more: &Attributes, read_format: u64) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        sample_period: more.sample_period.max(1),
        sample_type: more.sample_type | SAMPLE_TID | SAMPLE_TIME,
        read_format,
        flags: more.flags | SAMPLE_ID_ALL | USE_CLOCKID,
        // The same on all processors; `now_ns` reads it as well.
        clockid: libc::CLOCK_MONOTONIC,
        ..*more
    };
    // SAFETY: the structure has the size that it says, and outlives the call.
    owned(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            process,
            processor,
            -1,
            FLAG_FD_CLOEXEC,
        )
    })
}

/// Forks, execs, names, exits and executable mappings on a processor.
pub fn watch_processes(processor: i32) -> io::Result<OwnedFd> {
    watch(
        EVERYBODY,
        processor,
        Attributes {
            kind: TYPE_SOFTWARE,
            config: COUNT_SW_DUMMY,
            flags: MMAP | MMAP2 | COMM | COMM_EXEC | TASK,
            ..Attributes::default()
        },
    )
}

/// Every event of a tracepoint on a processor.
pub fn watch_tracepoint(processor: i32, id: u16) -> io::Result<OwnedFd> {
    watch(
        EVERYBODY,
        processor,
        Attributes {
            kind: TYPE_TRACEPOINT,
            config: id.into(),
            sample_type: SAMPLE_RAW,
            ..Attributes::default()
        },
    )
}

/// What a sample of the time on a processor has.
#[derive(Clone, Copy, Debug)]
pub struct ProcessorTime {
    /// Nanoseconds on the processor from one to the next.
    pub period_ns: u64,
    /// Registers of the program, as bits.
    pub registers: u64,
    /// Bytes of its stack at most.
    pub stack_bytes: u32,
    /// The kernel's part too, with its own call chain.
    pub kernel: bool,
}

/// Whose time is sampled.
#[derive(Clone, Copy, Debug)]
pub enum Sampled {
    /// What a thread starts, each from its first exec on.
    StartedBy(u32),
    /// A thread, from [`enable`] on.
    Thread(u32),
}

/// The time of a thread on a processor, with forks, execs, exits and executable mappings. A thread or child that it starts
/// is followed too.
pub fn sample_processor_time(
    of: Sampled,
    processor: i32,
    wanted: ProcessorTime,
) -> io::Result<OwnedFd> {
    let (sampled, flags) = match wanted.kernel {
        true => (SAMPLE_CALLCHAIN, EXCLUDE_CALLCHAIN_USER),
        false => (0, EXCLUDE_KERNEL | EXCLUDE_HV),
    };
    let (thread, begins) = match of {
        Sampled::StartedBy(thread) => (thread.cast_signed(), ENABLE_ON_EXEC),
        Sampled::Thread(thread) => (thread.cast_signed(), 0),
    };
    watch(
        thread,
        processor,
        Attributes {
            kind: TYPE_SOFTWARE,
            config: COUNT_SW_CPU_CLOCK,
            sample_period: wanted.period_ns,
            sample_type: SAMPLE_REGS_USER | SAMPLE_STACK_USER | sampled,
            sample_regs_user: wanted.registers,
            sample_stack_user: wanted.stack_bytes,
            flags: DISABLED | INHERIT | begins | flags | MMAP | MMAP2 | COMM | COMM_EXEC | TASK,
            ..Attributes::default()
        },
    )
}

/// Begins to count and sample.
pub fn enable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_ENABLE, 0) };
    checked(done.into()).map(drop)
}

/// `event` writes into the ring of `to`.
pub fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open perf events.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT, to.as_raw_fd()) };
    checked(done.into()).map(drop)
}

/// Records of this event that found no room; `None` where that cannot be read, or this
/// kernel does not tell it.
pub fn losses(event: &OwnedFd) -> Option<u64> {
    let mut values = [0_u64; 2]; // value, lost
    // SAFETY: the buffer has the size that is passed.
    let n = unsafe {
        libc::read(
            event.as_raw_fd(),
            values.as_mut_ptr().cast(),
            size_of_val(&values),
        )
    };
    (n == size_of_val(&values).cast_signed()).then_some(values[1])
}

/// What a [`closer`] releases, and when.
struct Handover {
    mappings: Vec<(*mut c_void, usize)>,
    events: Vec<OwnedFd>,
    pause: libc::timespec,
}

impl Handover {
    fn unmap(&self) {
        for (at, length) in &self.mappings {
            // SAFETY: a mapping that `Mapping::into_raw` gave away.
            unsafe { libc::munmap(*at, *length) };
        }
    }
}

/// Bytes of its stack: it makes system calls, and nothing else.
const CLOSER_STACK: usize = 16 * 1024;

/// Starts a process that holds nothing but these, stops the events, and ends after
/// `after`: then it, and not refit, waits for the kernel. It has a session of its
/// own, no terminal, sends no signal at its end, and its directory is `/`.
///
/// It shares refit's memory, because copying that would cost more than everything
/// else that it does. The memory that it uses (some 16 KiB) is not freed before both
/// have ended.
pub fn close_in_background(
    mappings: Vec<(*mut c_void, usize)>,
    mut events: Vec<OwnedFd>,
    after: Duration,
) {
    events.sort_unstable_by_key(AsRawFd::as_raw_fd);
    let handover = Box::leak(Box::new(Handover {
        mappings,
        events,
        pause: libc::timespec {
            tv_sec: after.as_secs().cast_signed(),
            tv_nsec: after.subsec_nanos().into(),
        },
    }));
    let stack = vec![0_u128; CLOSER_STACK / size_of::<u128>()].leak();
    // SAFETY: the stack is aligned, grows down from its end, and is nobody else's
    // for ever; nobody changes `handover` any more. 0: no signal at its end.
    let closer = unsafe {
        libc::clone(
            closer,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM,
            (&raw mut *handover).cast(),
        )
    };
    if closer < 0 {
        // As many processes as may be: then the waiting is ours.
        handover.unmap();
    }
    for event in &handover.events {
        // SAFETY: this process's copy of the descriptor, which nobody uses any
        // more; the closer has its own.
        unsafe { libc::close(event.as_raw_fd()) };
    }
}

/// Only system calls that cannot fail here: errno is the other process's.
extern "C" fn closer(handover: *mut c_void) -> libc::c_int {
    // SAFETY: what `close_in_background` leaked, which nobody changes; its
    // descriptors are our own copies, its mappings nobody's any more.
    unsafe {
        let handover = &*handover.cast::<Handover>();
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        let mut first = 0;
        for fd in handover.events.iter().map(AsRawFd::as_raw_fd) {
            if fd > first {
                libc::syscall(libc::SYS_close_range, first, fd - 1, 0);
            }
            libc::ioctl(fd, IOC_DISABLE, 0);
            first = fd + 1;
        }
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0);
        handover.unmap();
        libc::nanosleep(&raw const handover.pause, ptr::null_mut());
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bit that no kernel knows.
    const UNKNOWN: u64 = 1 << 63;

    #[test]
    fn a_kernel_that_does_not_count_losses_is_watched_too() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let more = Attributes {
            kind: TYPE_SOFTWARE,
            config: COUNT_SW_DUMMY,
            flags: TASK,
            ..Attributes::default()
        };
        let event = first_accepted(&[UNKNOWN, 0], |format| open(EVERYBODY, 0, &more, format));
        // Where perf events are not allowed there is nothing to try.
        if let Ok(event) = event {
            assert_eq!(losses(&event), None);
        }
    }

    #[test]
    fn only_an_unknown_format_is_followed_by_the_next() {
        let kernel = |known: u64, refusal: i32| {
            let open = |format| match format == known {
                true => Ok(format),
                false => Err(io::Error::from_raw_os_error(refusal)),
            };
            first_accepted(&READ_FORMATS, open).map_err(|error| error.raw_os_error())
        };
        assert_eq!(kernel(FORMAT_LOST, libc::EINVAL), Ok(FORMAT_LOST));
        assert_eq!(kernel(0, libc::EINVAL), Ok(0));
        assert_eq!(kernel(UNKNOWN, libc::EINVAL), Err(Some(libc::EINVAL)));
        assert_eq!(kernel(0, libc::EMFILE), Err(Some(libc::EMFILE)));
    }
}
