//! What refit itself was started with: its signals and its standard descriptors. A
//! program gets them as refit got them.

use std::mem::{MaybeUninit, zeroed};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

// Rust's start-up code ignores SIGPIPE and opens /dev/null where 0, 1 or 2 are
// closed (library/std/src/sys/pal/unix/mod.rs). We ignore SIGXFSZ, so that under
// a small `ulimit -f` our own files fail to be written and do not kill us. The
// program gets what refit got.
pub(super) const IGNORED: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];
pub(super) static WAS_DEFAULT: [AtomicBool; 2] = [AtomicBool::new(true), AtomicBool::new(true)];
pub(super) static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);

extern "C" fn remember_start() {
    // SAFETY: called once by the C library before main, on the only thread;
    // `action` is written before it is read, and nobody else sets dispositions.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        for (signal, was_default) in IGNORED.iter().zip(&WAS_DEFAULT) {
            if libc::sigaction(*signal, ptr::null(), &raw mut action) == 0 {
                was_default.store(action.sa_sigaction != libc::SIG_IGN, Ordering::Relaxed);
            }
        }
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
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

/// The mask that refit was started with: a program gets it, however many
/// programs refit starts with all signals blocked.
static FIRST_MASK: OnceLock<libc::sigset_t> = OnceLock::new();

/// Blocks all signals for as long as refit lives; returns the mask as it was at
/// the first call.
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

/// The command gets signals as refit got them, not as refit has them now.
pub fn with_first_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for (signal, was_default) in IGNORED.iter().zip(&WAS_DEFAULT) {
            if was_default.load(Ordering::Relaxed) {
                // SAFETY: SIG_DFL installs no handler.
                unsafe { libc::signal(*signal, libc::SIG_DFL) };
            }
        }
        if let Some(mask) = FIRST_MASK.get() {
            // SAFETY: the set was written before it was kept.
            unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec it calls signal and sigprocmask alone, both
    // async-signal-safe, and reads what nobody writes any more.
    unsafe { command.pre_exec(reset) }
}
