//! What refit itself was started with: its signals, its umask and its standard
//! descriptors. A program gets them as refit got them.

use std::mem::{MaybeUninit, zeroed};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

// Rust's start-up code ignores SIGPIPE and opens /dev/null where 0, 1 or 2 are
// closed (library/std/src/sys/pal/unix/mod.rs). We ignore SIGXFSZ, so that under
// a small `ulimit -f` our own files fail to be written and do not kill us, and
// take SIGCHLD back from a parent that ignores it: the kernel would reap our own
// commands before we learn how they ended (wait(2)). A umask that takes rights from
// the owner would keep us from our own files. The program gets what refit got.
// Each start pays for every system call here.

/// Signals, and whether refit ignores them.
const CHANGED: [(i32, bool); 3] = [
    (libc::SIGPIPE, true),
    (libc::SIGXFSZ, true),
    (libc::SIGCHLD, false),
];
static WAS_IGNORED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
/// The umask where it was changed.
static FIRST_UMASK: AtomicU32 = AtomicU32::new(UNCHANGED);
const UNCHANGED: u32 = u32::MAX;
/// That of nearly everybody.
const USUAL_UMASK: libc::mode_t = 0o022;
pub(super) static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);

/// The mask that refit was started with: a program gets it, however many
/// programs refit starts with all signals blocked.
static FIRST_MASK: OnceLock<libc::sigset_t> = OnceLock::new();

extern "C" fn remember_start() {
    // SAFETY: called once by the C library before main, on the only thread;
    // `action` and `mask` are written before they are read, and nobody else sets
    // dispositions.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut action);
        let first = [
            action.sa_sigaction,
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN),
            libc::signal(libc::SIGCHLD, libc::SIG_DFL),
        ];
        for (was_ignored, first) in WAS_IGNORED.iter().zip(first) {
            was_ignored.store(first == libc::SIG_IGN, Ordering::Relaxed);
        }
        let umask = libc::umask(USUAL_UMASK);
        if umask != USUAL_UMASK {
            libc::umask(umask & 0o077);
            FIRST_UMASK.store(umask, Ordering::Relaxed);
        }
        let mut mask = MaybeUninit::uninit();
        if libc::sigprocmask(libc::SIG_SETMASK, ptr::null(), mask.as_mut_ptr()) == 0 {
            // The first and only one.
            let _ = FIRST_MASK.set(mask.assume_init());
        }
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                CLOSED_AT_START.fetch_or(1 << fd, Ordering::Relaxed);
            }
        }
    }
}

// SAFETY: an entry of .init_array is a function that the C library calls before
// main; remember_start needs nothing that main sets up.
#[unsafe(link_section = ".init_array")]
#[used]
static REMEMBER_START: extern "C" fn() = remember_start;

/// Sets dispositions and umask as they were. Async-signal-safe.
pub(super) fn restore_start() {
    for ((signal, ignores), was_ignored) in CHANGED.iter().zip(&WAS_IGNORED) {
        let first = match was_ignored.load(Ordering::Relaxed) {
            was if was == *ignores => continue,
            true => libc::SIG_IGN,
            false => libc::SIG_DFL,
        };
        // SAFETY: neither installs a handler.
        unsafe { libc::signal(*signal, first) };
    }
    let umask = FIRST_UMASK.load(Ordering::Relaxed);
    if umask != UNCHANGED {
        // SAFETY: a plain integer.
        unsafe { libc::umask(umask) };
    }
}

/// Blocks all signals for as long as refit lives; returns the mask that it was started
/// with.
pub(super) fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are written by the calls before they are read.
    let before = unsafe {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    };
    *FIRST_MASK.get_or_init(|| before)
}

/// The command gets signals and umask as refit got them, not as refit has them now.
pub fn with_first_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        restore_start();
        if let Some(mask) = FIRST_MASK.get() {
            // SAFETY: the set was written before it was kept.
            unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec it calls signal, umask and sigprocmask alone, all
    // async-signal-safe, and reads what nobody writes any more.
    unsafe { command.pre_exec(reset) }
}
