//! Processes of refit's own that do refit's work elsewhere.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, getpid, pidfd_open, waitid};

/// A child or another process, named so that no other process can be mistaken for it.
pub struct Child {
    /// Its number.
    pub pid: Pid,
    /// Becomes readable when it ends (pidfd_open(2)).
    pub pidfd: OwnedFd,
}

pub(super) extern "C" fn run_and_exit<F: FnOnce() -> i32>(work: F) -> ! {
    // A panic must not unwind into refit's own code, which the child shares:
    // it ends at this function's border (extern "C").
    let code = work();
    // SAFETY: ends the process, without the exit handlers that are refit's.
    unsafe { libc::_exit(code) }
}

/// A process with other threads must not be forked: the child would have none of
/// them, and would wait forever for a lock that one of them held.
#[derive(Debug, thiserror::Error)]
#[error("refit has {0} threads, and only a process with one thread can be forked safely")]
struct OtherThreads(u64);

/// Whether this process may be forked.
///
/// # Errors
/// It has other threads, or no /proc tells how many.
fn check_single_thread() -> io::Result<()> {
    // Two links, and one for each thread (fs/proc/base.c, proc_task_getattr).
    let links = std::fs::metadata("/proc/self/task")?.nlink();
    match links.saturating_sub(2) {
        1 => Ok(()),
        threads => Err(io::Error::other(OtherThreads(threads))),
    }
}

/// Runs `work` in a forked process.
///
/// # Errors
/// This process has other threads, or there can be no more processes.
pub fn fork(work: impl FnOnce() -> i32) -> io::Result<Child> {
    check_single_thread()?;
    // SAFETY: there is one thread, so the child finds no lock that another one
    // holds; it never returns from here.
    match unsafe { libc::fork() } {
        0 => run_and_exit(work),
        -1 => Err(io::Error::last_os_error()),
        pid => child(pid),
    }
}

/// The parent of an orphan: it ends as soon as it has forked that.
pub struct OrphansParent(libc::pid_t);

/// Runs `work` in a process whose parent ends at once. This does not wait for it:
/// it has been forked when its parent was reaped.
///
/// # Errors
/// As [`fork`].
pub fn fork_orphan(work: impl FnOnce() -> i32) -> io::Result<OrphansParent> {
    check_single_thread()?;
    // SAFETY: as in `fork`, twice.
    let parent = || unsafe {
        match libc::fork() {
            0 => run_and_exit(work),
            pid => i32::from(pid < 0),
        }
    };
    // SAFETY: as in `fork`.
    match unsafe { libc::fork() } {
        0 => run_and_exit(parent),
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(OrphansParent(pid)),
    }
}

impl OrphansParent {
    /// Waits for its end, which is soon. False: it could not fork.
    pub fn reap(self) -> bool {
        let mut status = 0;
        // SAFETY: writes into `status`. Where SIGCHLD is ignored the call waits as
        // well, and tells nothing (wait(2)).
        while unsafe { libc::waitpid(self.0, &raw mut status, 0) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        status == 0
    }
}

/// The process in which [`split`] returns.
pub enum Side {
    /// The process that was there before.
    Parent(Child),
    /// The new one.
    Child,
}

/// Forks a process that continues here, as its parent does: for those that
/// [`fork`] made, where there is no way back into refit's own code.
///
/// # Errors
/// As [`fork`].
pub fn split() -> io::Result<Side> {
    check_single_thread()?;
    // SAFETY: there is one thread, as in `fork`.
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

/// What the scheduler has done for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// It runs, or only waits for a processor.
    pub is_runnable: bool,
    /// Processor time of its threads, in nanoseconds; of a clock tick's resolution.
    pub ran_ns: u64,
}

impl Scheduled {
    /// Of the text of /proc/PID/stat (proc_pid_stat(5): `state`, `utime`, `stime`).
    fn of(stat: &str) -> Option<Scheduled> {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let ticks = |text: &str| text.parse::<u64>().ok();
        let user = ticks(fields.nth(10)?)?;
        let system = ticks(fields.next()?)?;
        Some(Scheduled {
            is_runnable: state == "R",
            ran_ns: (user + system).saturating_mul(1_000_000_000 / clock_ticks_per_second()),
        })
    }
}

impl Child {
    /// `None`: it has been reaped, or is unknown.
    pub fn scheduled(&self) -> Option<Scheduled> {
        let pid = self.pid.as_raw_nonzero();
        Scheduled::of(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The calling process, for a child of it.
    pub fn own() -> io::Result<Child> {
        child(getpid().as_raw_nonzero().get())
    }

    /// A process by its pid, which this one need not reap.
    pub fn adopt(pid: u32) -> io::Result<Child> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Child { pid, pidfd })
    }

    /// Waits for its end.
    pub fn reap(self) {
        let reaped = || waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        // With SIGCHLD ignored the kernel has done it: ECHILD.
        let _ = rustix::io::retry_on_intr(reaped);
    }
}

/// Gives up refit's process group, signals and descriptors, except for these. The
/// session stays refit's: with sched_autogroup_enabled the kernel schedules each
/// session as one (sched(7)), and two processes that wait for each other all the
/// time are slower in two of them.
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
    super::first_signals::block_signals();
    let _ = rustix::process::setpgid(None, None);
    let _ = rustix::process::chdir("/");
    let _ = rustix::thread::set_name(name);
    // The default of 50 µs would be added to each wait (prctl(2)).
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
}

/// Makes the calling process, which leads no process group, leave its session.
pub fn leave_session() {
    let _ = rustix::process::setsid();
}

/// Lets the calling process not preempt the one that wakes it (sched(7),
/// SCHED_BATCH). False: the user has set another policy, which stays.
pub fn use_batch_scheduling() -> bool {
    // SAFETY: about the calling process alone.
    let usual = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
    if usual {
        set_policy(libc::SCHED_BATCH);
    }
    usual
}

/// Undoes [`use_batch_scheduling`].
pub fn use_normal_scheduling() {
    set_policy(libc::SCHED_OTHER);
}

fn set_policy(policy: i32) {
    // SAFETY: zeros are valid; both policies want priority 0.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: about the calling process alone; the structure outlives the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_other_threads_is_not_forked() {
        // The tests themselves run on threads; one more makes sure.
        std::thread::scope(|scope| {
            let (stop, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || wait.recv());
            let refused =
                |error: io::Error| assert!(error.to_string().contains("threads"), "{error}");
            fork(|| 0).map(Child::reap).map_err(refused).unwrap_err();
            fork_orphan(|| 0)
                .map(OrphansParent::reap)
                .map_err(refused)
                .unwrap_err();
            drop(stop);
        });
    }

    #[test]
    fn the_state_and_the_processor_time_follow_the_name() {
        let tick_ns = 1_000_000_000 / clock_ticks_per_second();
        let stat =
            |state| format!("7 (a) R 1) {state} 1 2 3 4 5 6 7 8 9 10 20 22 999 999 20 0 1 0\n");
        let of = |state| Scheduled::of(&stat(state)).unwrap();
        assert!(of('R').is_runnable && !of('D').is_runnable && !of('Z').is_runnable);
        assert_eq!(of('R').ran_ns, 42 * tick_ns);
        assert_eq!(Scheduled::of("7 (a) R 1 2"), None);
    }
}
