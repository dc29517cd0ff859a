//! Signals that request the end of refit itself.

use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use super::first_signals::block_signals;

static INTERRUPTIONS: AtomicUsize = AtomicUsize::new(0);

/// The first of them; 0 before it.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

type Notice = Box<dyn Fn(usize) + Send + Sync>;
static NOTICE: OnceLock<Notice> = OnceLock::new();

/// Counts it. The signals are blocked and waited for, so this runs in no signal handler.
pub(super) fn note_interruption(signal: i32) {
    let asks = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal);
    if asks && !is_ignored(signal) {
        let before = INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            SIGNAL.store(signal, Ordering::Relaxed);
        }
        if let Some(notice) = NOTICE.get() {
            notice(before + 1);
        }
    }
}

/// Whether refit was started with this signal ignored, as nohup(1) does with SIGHUP. A
/// blocked signal is kept for sigtimedwait(2) even then (kernel/signal.c, `sig_ignored`).
fn is_ignored(signal: i32) -> bool {
    // SAFETY: without a new action the call only fills `old`, which is ours; all zero
    // bytes are a valid sigaction.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0
            && old.sa_sigaction == libc::SIG_IGN
    }
}

/// Calls `notice` with the number of each interruption as soon as it is taken. The
/// first call of this decides.
pub fn on_interruption(notice: impl Fn(usize) + Send + Sync + 'static) {
    // A second one is a mistake of refit, and no reason to fail.
    let _ = NOTICE.set(Box::new(notice));
}

/// The signal of the first interruption.
pub fn interrupting_signal() -> Option<i32> {
    Some(SIGNAL.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

/// From now on SIGINT and its kin end nothing by themselves: they are counted.
pub fn count_interruptions() {
    block_signals();
}

/// Ends refit after the current step, as an interruption does; no signal is the reason.
pub fn interrupt() {
    INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
}

/// How many interruptions were noted. Takes no signal: one that a child has
/// ended may be among those that wait.
pub(super) fn noted() -> usize {
    INTERRUPTIONS.load(Ordering::Relaxed)
}

/// How many requests to end refit received since [`count_interruptions`]: one means
/// after the current step, two mean immediately.
pub fn interruptions() -> usize {
    while let Some(info) = wait_signal(Duration::ZERO) {
        note_interruption(info.si_signo);
    }
    noted()
}

/// Waits until a child ends, a signal comes, or the time is over.
pub fn doze(longest: Duration) {
    if let Some(info) = wait_signal(longest) {
        note_interruption(info.si_signo);
    }
}

/// The next signal, or `None` after the timeout.
pub(super) fn wait_signal(timeout: Duration) -> Option<libc::siginfo_t> {
    let timeout = libc::timespec {
        tv_sec: 0,
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    // SAFETY: the set and the info are ours and live through the call; info is
    // only read when the call says that it filled it.
    unsafe {
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        let mut info = MaybeUninit::uninit();
        let signal = libc::sigtimedwait(all.as_ptr(), info.as_mut_ptr(), &raw const timeout);
        (signal > 0).then(|| info.assume_init())
    }
}
