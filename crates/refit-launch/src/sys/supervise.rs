//! A parent that nobody notices: the program has the signals, the descriptors
//! and the process group that it would have had without refit.
//!
//! Signals of the terminal reach the whole foreground group, the program
//! included, so they are never forwarded; what another process sent to refit
//! alone is. Stops and continues are mirrored, and a fatal signal is raised
//! again on refit itself, so that a shell sees what it would have seen.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::group::GroupMember;
use crate::thp::ThpAction;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Signaled(i32),
}

/// The program could not be exec'ed; `errno` of the exec.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StartError(#[from] pub io::Error);

/// What a program and all that it waited for took (wait4(2)).
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time in the programs.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Resident memory of the largest process at its peak. The kernel counts
    /// what refit itself had in memory at the exec (exec_mmap in fs/exec.c), so
    /// what is not above that is not known: `None`.
    pub max_rss_bytes: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// The program waited for something.
    pub voluntary_switches: u64,
    /// The kernel took the processor away.
    pub involuntary_switches: u64,
    /// Bytes that were to be written to a disk.
    pub written_bytes: u64,
}

/// A program that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How.
    pub end: End,
    /// From its start to its end.
    pub wall: Duration,
    /// What it took.
    pub usage: Usage,
    /// It was killed because its time was over.
    pub timed_out: bool,
}

/// What is exec'ed.
pub struct Program {
    /// At least the name.
    pub argv: Vec<CString>,
    /// `NAME=VALUE`.
    pub envp: Vec<CString>,
    /// Done by the child before its exec.
    pub thp: Option<ThpAction>,
    /// In place of refit's own 0, 1 and 2, where it is not the user's to talk
    /// to: then it also gets a session of its own.
    pub apart: Option<Apart>,
}

/// A program that runs apart from refit's terminal.
pub struct Apart {
    /// Its standard input, output and error.
    pub files: [File; 3],
    /// Where it runs; `None`: where refit runs.
    pub directory: Option<CString>,
}

// Rust's start-up code ignores SIGPIPE and opens /dev/null where 0, 1 or 2 are
// closed (library/std/src/sys/pal/unix/mod.rs). We ignore SIGXFSZ, so that under
// a small `ulimit -f` our own files fail to be written and do not kill us. The
// program gets what refit got.
const IGNORED: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];
static WAS_DEFAULT: [AtomicBool; 2] = [AtomicBool::new(true), AtomicBool::new(true)];
static CLOSED_AT_START: AtomicU8 = AtomicU8::new(0);

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

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|s| s.as_ptr())
        .chain([ptr::null()])
        .collect()
}

unsafe extern "C" {
    static mut environ: *const *const libc::c_char;
}

impl Program {
    /// Becomes the program. Returns only on failure.
    pub fn replace(&self) -> StartError {
        let argv = pointers(&self.argv);
        let envp = pointers(&self.envp);
        // SAFETY: refit has one thread; both arrays end with NULL, point to
        // NUL-terminated strings, and live until the exec or the return.
        unsafe { become_program(self, &argv, &envp) }.into()
    }
}

/// Only async-signal-safe calls: this runs between clone and exec.
unsafe fn become_program(
    program: &Program,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
) -> io::Error {
    // SAFETY: the caller holds that the arrays are NULL-terminated and that no
    // other thread reads `environ`.
    unsafe {
        for (signal, was_default) in IGNORED.iter().zip(&WAS_DEFAULT) {
            if was_default.load(Ordering::Relaxed) {
                libc::signal(*signal, libc::SIG_DFL);
            }
        }
        for fd in 0..3 {
            if CLOSED_AT_START.load(Ordering::Relaxed) & (1 << fd) != 0 {
                libc::close(fd);
            }
        }
        if let Some(apart) = &program.apart {
            // A group of its own, and no terminal: one that reads from a terminal
            // in the background is stopped, and nobody would continue it.
            libc::setsid();
            for (fd, file) in (0..).zip(&apart.files) {
                // Above 2, so that none is overwritten before its turn.
                libc::dup2(file.as_raw_fd(), fd);
            }
            if let Some(directory) = &apart.directory
                && libc::chdir(directory.as_ptr()) < 0
            {
                return io::Error::last_os_error();
            }
        }
        if let Some(action) = program.thp
            && let Err(error) = super::thp::disable(action == ThpAction::DisableExceptAdvised)
        {
            return error;
        }
        // As env(1): the program is looked for in the PATH that it will have.
        environ = envp.as_ptr();
        libc::execvp(argv[0], argv.as_ptr());
    }
    io::Error::last_os_error()
}

/// The mask that refit was started with: a program gets it, however many
/// programs refit starts with all signals blocked.
static FIRST_MASK: OnceLock<libc::sigset_t> = OnceLock::new();

/// Blocks all signals for as long as refit lives; returns the mask as it was at
/// the first call.
fn block_signals() -> libc::sigset_t {
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

/// What the child needs, and where it leaves the errno of a failed exec. Parent
/// and child share their memory until the exec.
struct Start<'a> {
    program: &'a Program,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    mask: libc::sigset_t,
    child_was_ignored: bool,
    error: Option<io::Error>,
}

/// Runs in the child, on a stack of its own; ends by exec or _exit.
extern "C" fn child(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` is what `start()` passed, which waits until we are done
    // with it (CLONE_VFORK). Dispositions and mask are the child's own.
    unsafe {
        let start = &mut *start.cast::<Start>();
        if start.child_was_ignored {
            libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const start.mask, ptr::null_mut());
        let error = become_program(start.program, &start.argv, &start.envp);
        start.error = Some(error);
        libc::_exit(127)
    }
}

/// Starts the child as vfork does, but on a stack of its own: no page tables
/// are copied, and an exec error comes back through memory.
fn start(
    program: &Program,
    mask: libc::sigset_t,
    child_was_ignored: bool,
) -> Result<libc::pid_t, StartError> {
    const STACK: usize = 64 * 1024;
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let mut start = Start {
        program,
        argv: pointers(&program.argv),
        envp: pointers(&program.envp),
        mask,
        child_was_ignored,
        error: None,
    };
    // SAFETY: the stack is ours, aligned, and grows down from its end; stack
    // and `start` outlive the child's use of them, because CLONE_VFORK holds us
    // until it has exec'ed or ended. `environ` is set back to what it was.
    let pid = unsafe {
        let before = environ;
        let pid = libc::clone(
            child,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut start).cast(),
        );
        environ = before;
        pid
    };
    if pid < 0 {
        return Err(io::Error::last_os_error().into());
    }
    if let Some(error) = start.error {
        // SAFETY: reaps the child that just said that it ends.
        unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        return Err(error.into());
    }
    Ok(pid)
}

/// Starts the program. With SIGCHLD ignored the kernel would reap it for us
/// (wait(2)).
fn launch(program: &Program) -> Result<libc::pid_t, StartError> {
    let mask = block_signals();
    // SAFETY: sets a disposition on the only thread.
    let before = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    start(program, mask, before == libc::SIG_IGN)
}

/// Starts the program and stays until it ends. `started` gets its pid; `tick`
/// is called about ten times a second while it runs.
pub fn supervise(
    program: &Program,
    started: impl FnOnce(u32),
    mut tick: impl FnMut(),
) -> Result<Ended, StartError> {
    let began = Instant::now();
    let pid = launch(program)?;
    started(pid.unsigned_abs());
    let mut member = None;
    loop {
        match wait_signal(TICK) {
            None => {
                // Not before: a short run has better things to do.
                member = member.or_else(GroupMember::start);
                tick();
            }
            Some(info) if info.si_signo == libc::SIGCHLD => {
                while let Some(change) = child_change(pid) {
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

const TICK: Duration = Duration::from_millis(100);

/// Starts a program that runs apart, and stays until it ends or its time is
/// over. Interruptions are counted, and the second kills it.
pub fn measure(
    program: &Program,
    timeout: Option<Duration>,
    started: impl FnOnce(u32),
    mut tick: impl FnMut(),
) -> Result<Ended, StartError> {
    let began = Instant::now();
    let pid = launch(program)?;
    started(pid.unsigned_abs());
    let mut timed_out = false;
    loop {
        let left = timeout.map_or(TICK, |timeout| timeout.saturating_sub(began.elapsed()));
        match wait_signal(if timed_out { TICK } else { left.min(TICK) }) {
            None => tick(),
            Some(info) if info.si_signo == libc::SIGCHLD => {
                while let Some(change) = child_change(pid) {
                    if let Change::Ended(end, usage) = change {
                        return Ok(Ended {
                            end,
                            wall: began.elapsed(),
                            usage,
                            timed_out,
                        });
                    }
                }
            }
            Some(info) => note_interruption(info.si_signo),
        }
        let over = timeout.is_some_and(|timeout| began.elapsed() >= timeout);
        if (over && !timed_out) || INTERRUPTIONS.load(Ordering::Relaxed) > 1 {
            timed_out = over;
            // SAFETY: the group is the program's own; it is not yet reaped.
            unsafe { libc::kill(-pid, libc::SIGKILL) };
        }
    }
}

static INTERRUPTIONS: AtomicUsize = AtomicUsize::new(0);

fn note_interruption(signal: i32) {
    if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal) {
        INTERRUPTIONS.fetch_add(1, Ordering::Relaxed);
    }
}

/// From now on SIGINT and its kin end nothing by themselves: they are counted.
pub fn count_interruptions() {
    block_signals();
}

/// How often somebody asked refit to end since [`count_interruptions`]: once
/// means after what is under way, twice at once.
pub fn interruptions() -> usize {
    while let Some(info) = wait_signal(Duration::ZERO) {
        note_interruption(info.si_signo);
    }
    INTERRUPTIONS.load(Ordering::Relaxed)
}

/// The next signal, or `None` after the timeout.
fn wait_signal(timeout: Duration) -> Option<libc::siginfo_t> {
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

enum Change {
    Ended(End, Usage),
    Stopped(i32),
}

fn own_peak_kib() -> libc::c_long {
    // SAFETY: all zeros is a rusage, which the call fills.
    unsafe {
        let mut own: libc::rusage = zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut own);
        own.ru_maxrss
    }
}

fn usage(raw: &libc::rusage) -> Usage {
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs())
            + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    Usage {
        user: time(raw.ru_utime),
        system: time(raw.ru_stime),
        max_rss_bytes: Some(raw.ru_maxrss)
            .filter(|kib| *kib > own_peak_kib())
            .map(|kib| kib.unsigned_abs() * 1024),
        minor_faults: raw.ru_minflt.unsigned_abs(),
        major_faults: raw.ru_majflt.unsigned_abs(),
        voluntary_switches: raw.ru_nvcsw.unsigned_abs(),
        involuntary_switches: raw.ru_nivcsw.unsigned_abs(),
        written_bytes: raw.ru_oublock.unsigned_abs() * 512,
    }
}

fn child_change(pid: libc::pid_t) -> Option<Change> {
    let mut status = 0;
    loop {
        // SAFETY: all zeros is a rusage.
        let mut raw: libc::rusage = unsafe { zeroed() };
        // SAFETY: status and usage outlive the call.
        let got = unsafe {
            libc::wait4(
                pid,
                &raw mut status,
                libc::WNOHANG | libc::WUNTRACED,
                &raw mut raw,
            )
        };
        if got != pid {
            return None;
        }
        if libc::WIFEXITED(status) {
            return Some(Change::Ended(
                End::Exited(libc::WEXITSTATUS(status)),
                usage(&raw),
            ));
        }
        if libc::WIFSIGNALED(status) {
            return Some(Change::Ended(
                End::Signaled(libc::WTERMSIG(status)),
                usage(&raw),
            ));
        }
        if libc::WIFSTOPPED(status) {
            return Some(Change::Stopped(libc::WSTOPSIG(status)));
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
/// reached it by itself.
fn forward(pid: libc::pid_t, info: &libc::siginfo_t, member: Option<&mut GroupMember>) {
    // SAFETY: si_pid is valid for signals that a process sent (sigaction(2)).
    let from_another = info.si_code <= 0 && unsafe { info.si_pid() } != pid;
    if from_another && !member.is_some_and(|member| member.saw(info.si_signo)) {
        // SAFETY: the program is our child and not yet reaped.
        unsafe { libc::kill(pid, info.si_signo) };
    }
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
