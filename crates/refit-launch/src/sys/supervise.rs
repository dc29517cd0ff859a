//! A transparent parent: the program has the signals, the descriptors
//! and the process group that it would have had without refit.
//!
//! Signals of the terminal reach the whole foreground group, the program
//! included, so they are never forwarded; what another process sent to refit
//! alone is. Stops and continues are mirrored, and a fatal signal is raised
//! again on refit itself, so that a shell sees what it would have seen.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::{Duration, Instant};

use super::TICK;
use super::ended::{Change, End, Ended, child_change};
use super::filter::Installation;
use super::group::GroupMember;
use super::interruption::wait_signal;
use super::program::{Program, launch};
use super::started::StartError;

/// Starts the program and stays until it ends. `started` gets its pid; `tick`
/// is called this often while it runs.
pub fn supervise(
    program: &Program,
    filter: Option<&Installation>,
    started: impl FnOnce(u32),
    every: Duration,
    mut tick: impl FnMut(),
) -> Result<Ended, StartError> {
    let began = Instant::now();
    let pid = launch(program, filter)?.pid;
    started(pid.unsigned_abs());
    let mut member = None;
    loop {
        match wait_signal(every) {
            None => {
                // Not earlier: it would only cost a short run time.
                if began.elapsed() >= TICK {
                    member = member.or_else(GroupMember::start);
                }
                tick();
            }
            Some(info) if info.si_signo == libc::SIGCHLD => {
                while let Some(change) = child_change(pid, false) {
                    match change {
                        Change::Ended(end, usage) => {
                            return Ok(Ended {
                                end,
                                wall: began.elapsed(),
                                usage,
                                timed_out: false,
                            });
                        }
                        Change::Stopped(signal) => mirror_stop(pid, signal),
                    }
                }
            }
            Some(info) => forward(pid, &info, member.as_mut()),
        }
    }
}

/// Stops as the program was stopped, so that the shell takes the terminal back;
/// continues it where only refit was continued. Away from a terminal somebody
/// stopped the program by its pid, and will continue only that.
fn mirror_stop(pid: libc::pid_t, signal: i32) {
    if !in_foreground() {
        return;
    }
    raise_default(signal);
    let still_stopped = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| rest.starts_with('T'))
        })
        .unwrap_or(false);
    if still_stopped {
        // SAFETY: the program is our child and not yet reaped.
        unsafe { libc::kill(pid, libc::SIGCONT) };
    }
}

/// What another process sent to refit alone is meant for the program. What the
/// kernel sent (SI_KERNEL: the terminal), or somebody to the whole group, has
/// reached it already. A SIGPIPE of refit's own writes is refit's.
fn forward(pid: libc::pid_t, info: &libc::siginfo_t, member: Option<&mut GroupMember>) {
    // SAFETY: si_pid is valid for signals that a process sent (sigaction(2)); getpid takes nothing.
    let from_another =
        info.si_code <= 0 && unsafe { ![pid, libc::getpid()].contains(&info.si_pid()) };
    let is_for_program = from_another && !member.is_some_and(|member| member.saw(info.si_signo));
    if is_for_program || is_for_leader(info) {
        // SAFETY: the program is our child and not yet reaped.
        unsafe { libc::kill(pid, info.si_signo) };
    }
}

/// A terminal that hangs up tells the leader of its session alone, which the program would be without refit
/// (drivers/tty/tty_jobctrl.c, `tty_signal_session_leader`).
fn is_for_leader(info: &libc::siginfo_t) -> bool {
    let is_hangup = [libc::SIGHUP, libc::SIGCONT].contains(&info.si_signo);
    // SAFETY: both take plain integers.
    is_hangup && info.si_code == libc::SI_KERNEL && unsafe { libc::getsid(0) == libc::getpid() }
}

/// Whether refit is in the foreground group of its terminal.
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    // SAFETY: the descriptor is open.
    unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() }
}

/// Raises a signal on refit with its default action.
fn raise_default(signal: i32) {
    // SAFETY: the set is initialised before use, and refit has one thread.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = MaybeUninit::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::raise(signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
        libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
    }
}

/// Ends refit as the program ended: with its code, or by its signal (without a
/// second core dump).
pub fn end_as(end: End) -> ! {
    match end {
        End::Exited(code) => std::process::exit(code),
        End::Signaled(signal) => {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: plain data that outlives the call.
            unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
            raise_default(signal);
            // Signals whose default is not to kill cannot have killed.
            std::process::exit(128 + signal)
        }
    }
}
