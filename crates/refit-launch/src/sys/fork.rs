//! Processes of refit's own that do refit's work elsewhere.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};

/// A child by a name that no other process can take.
pub struct Child {
    /// Its number.
    pub pid: Pid,
    /// Becomes readable when it ends (pidfd_open(2)).
    pub pidfd: OwnedFd,
}

extern "C" fn run_and_exit<F: FnOnce() -> i32>(work: F) -> ! {
    // A panic must not unwind into refit's own code, which the child shares:
    // it ends at this function's border (extern "C").
    let code = work();
    // SAFETY: ends the process, without the exit handlers that are refit's.
    unsafe { libc::_exit(code) }
}

/// Runs `work` in a forked process.
pub fn fork(work: impl FnOnce() -> i32) -> io::Result<Child> {
    // SAFETY: refit has one thread, so the child finds no lock that another one
    // holds; it never returns from here.
    match unsafe { libc::fork() } {
        0 => run_and_exit(work),
        -1 => Err(io::Error::last_os_error()),
        pid => child(pid),
    }
}

/// Bytes of the stack of an orphan. Pages that are not touched are not there.
const ORPHAN_STACK: usize = 1 << 20;

/// What the parent of an orphan needs, and what it leaves.
struct Birth<F> {
    work: Option<F>,
    failed: Option<io::Error>,
}

/// Forks and ends: it shares our memory, which waits for its end.
extern "C" fn give_birth<F: FnOnce() -> i32>(birth: *mut libc::c_void) -> libc::c_int {
    // SAFETY: what `fork_orphan` passed, which uses it again when we have ended.
    unsafe {
        let birth = &mut *birth.cast::<Birth<F>>();
        match libc::fork() {
            0 => run_and_exit(birth.work.take().expect("it is run once")),
            -1 => birth.failed = Some(io::Error::last_os_error()),
            _ => {}
        }
        libc::_exit(0)
    }
}

/// Runs `work` in a process that is nobody's child: its parent has ended. That one
/// is made as by vfork(2), so that refit's memory is copied only once.
pub fn fork_orphan<F: FnOnce() -> i32>(work: F) -> io::Result<()> {
    let mut stack = vec![0_u128; ORPHAN_STACK / size_of::<u128>()];
    let mut birth = Birth {
        work: Some(work),
        failed: None,
    };
    // SAFETY: the stack is ours, aligned, and grows down from its end; stack and
    // `birth` outlive the child's use of them, because CLONE_VFORK holds us until
    // it has ended; the orphan has a copy of both. refit has one thread, so a fork
    // finds no lock that another one holds.
    let pid = unsafe {
        libc::clone(
            give_birth::<F>,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut birth).cast(),
        )
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: our child, which has ended; with SIGCHLD ignored nothing is left of
    // it: ECHILD.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    birth.failed.map_or(Ok(()), Err)
}

/// Whose side of a [`split`] it is.
pub enum Side {
    /// The process that was there before.
    Parent(Child),
    /// The new one.
    Child,
}

/// Forks a process that goes on here, as its parent does: for those that
/// [`fork`] made, where there is no way back into refit's own code.
pub fn split() -> io::Result<Side> {
    // SAFETY: the process has one thread.
    match unsafe { libc::fork() } {
        0 => Ok(Side::Child),
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Side::Parent(child(pid)?)),
    }
}

fn child(pid: libc::pid_t) -> io::Result<Child> {
    let pid = Pid::from_raw(pid).expect("a child's pid is not 0");
    // Nobody else reaps it, so the pid is still the child's.
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(Child { pid, pidfd })
}

/// Names the calling process.
pub fn own_pidfd() -> io::Result<OwnedFd> {
    Ok(pidfd_open(getpid(), PidfdFlags::empty())?)
}

impl Child {
    /// A process by its number, which is not ours to reap.
    pub fn adopt(pid: u32) -> io::Result<Child> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Child { pid, pidfd })
    }

    /// Waits for its end, and forgets it.
    pub fn reap(self) {
        let reaped = || waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        // With SIGCHLD ignored the kernel has done it: ECHILD.
        let _ = rustix::io::retry_on_intr(reaped);
    }
}

/// Leaves refit's terminal, signals and descriptors behind, but for these.
pub fn detach(name: &CStr, keep: &[BorrowedFd<'_>]) {
    let mut kept: Vec<u32> = keep
        .iter()
        .map(|fd| fd.as_raw_fd().cast_unsigned())
        .collect();
    kept.sort_unstable();
    kept.push(u32::MAX);
    let mut from = 0;
    for fd in kept {
        if from < fd {
            // SAFETY: nothing of refit's own code runs in this process any more
            // that could use one of them.
            unsafe { libc::syscall(libc::SYS_close_range, from, fd - 1, 0) };
        }
        from = fd.saturating_add(1);
    }
    for _ in 0..3 {
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null");
        // Stays open, so that nothing else becomes 0, 1 or 2.
        std::mem::forget(null);
    }
    super::program::block_signals();
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    let _ = rustix::thread::set_name(name);
    // The default of 50 µs would be added to each wait (prctl(2)).
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
}
