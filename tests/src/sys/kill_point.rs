//! Kills a program exactly before or after one of its system calls that change files or start processes, or lets one
//! fail, by ptrace.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::arch::{self, Registers};

/// Where a program is killed: at the nth such call, from 1.
#[derive(Clone, Copy, Debug)]
pub enum KillPoint {
    Before(usize),
    After(usize),
    /// It is not killed: the nth such call, or fsync, is not made, and fails with EIO.
    Fail(usize),
}

impl KillPoint {
    /// Before and after each of so many calls.
    pub fn around(calls: usize) -> impl Iterator<Item = KillPoint> {
        (1..=calls).flat_map(|n| [KillPoint::Before(n), KillPoint::After(n)])
    }
}

/// Those that make, write, rename, remove or re-own, beside those of the architecture.
const CHANGING: [i64; 14] = [
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fsetxattr,
    libc::SYS_ftruncate,
    libc::SYS_linkat,
];

/// Those that start a process. The parent of a vfork goes on when its child has become another program.
const STARTING: [i64; 2] = [libc::SYS_clone, libc::SYS_clone3];

/// Those that send a signal.
const SIGNALLING: [i64; 4] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_send_signal,
];

/// Which calls are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Those that change files or write to sockets.
    Files,
    /// And those after the first of them that start processes. Before it nothing is changed.
    FilesAndStarts,
}

/// What was seen of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// How many calls it began that change files.
    pub files: usize,
    /// How many that write to a socket: commands to a server, which also asks until it has started.
    pub sent: usize,
    /// How many that start processes.
    pub starts: usize,
    /// Whether it started or signalled a process since the counted call before the last one. Otherwise a kill after
    /// that one leaves what a kill before the last one leaves.
    pub acted: bool,
    pub was_killed: bool,
}

/// Runs a program of one thread to its end or to this point of the calls that change files; how many of
/// these it began, and whether it was killed.
pub fn run_to(command: &mut Command, point: Option<KillPoint>) -> io::Result<(usize, bool)> {
    let (seen, _) = run_to_call(command, Calls::Files, point)?;
    Ok((seen.files + seen.sent, seen.was_killed))
}

/// Runs a program of one thread to its end or to this point; also its exit code, if it has one. What it
/// starts is not traced, and goes on.
pub fn run_to_call(
    command: &mut Command,
    calls: Calls,
    point: Option<KillPoint>,
) -> io::Result<(Seen, Option<i32>)> {
    run_watched(command, calls, point, &mut |_| ())
}

/// Runs a program of one thread to its end; before its nth call that changes files `act` is done. Its exit code.
pub fn run_beside(
    command: &mut Command,
    n: usize,
    act: impl Fn(),
) -> io::Result<(Seen, Option<i32>)> {
    run_watched(command, Calls::Files, None, &mut |begun| {
        if begun == n {
            act();
        }
    })
}

/// `at_call` is called before each counted call with how many there are, and this one.
fn run_watched(
    command: &mut Command,
    calls: Calls,
    point: Option<KillPoint>,
    at_call: &mut dyn FnMut(usize),
) -> io::Result<(Seen, Option<i32>)> {
    // SAFETY: between fork and exec this one system call is made, which takes no pointer that is
    // used.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).expect("process ids are ints");
    let mut status = 0;
    let mut seen = Seen::default();
    let (mut is_set, mut is_inside, mut counts, mut changed) = (false, false, false, false);
    let fails = matches!(point, Some(KillPoint::Fail(_)));
    loop {
        // SAFETY: `status` is writable for the whole call.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {
            return Err(io::Error::last_os_error());
        }
        if !libc::WIFSTOPPED(status) {
            // It is reaped; `child` has nothing to wait for, and only its pipes are left.
            seen.was_killed = libc::WIFSIGNALED(status);
            drop(child.stdin.take());
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            return Ok((seen, code));
        }
        if !is_set {
            let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
            // SAFETY: the options are passed by value.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
            is_set = true;
        } else if libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
            // At the exit the number is not told: it is of the call that was entered last.
            let is_entry = !is_inside;
            is_inside = is_entry;
            if is_entry {
                let registers = registers(pid)?;
                let (call, _) = arch::call(&registers);
                let changes = is_changing(&registers, fails);
                changed |= changes;
                let starts = changed && calls == Calls::FilesAndStarts && is_starting(call);
                let sends = changes && is_to_socket(pid, &registers);
                seen.files += usize::from(changes && !sends);
                seen.sent += usize::from(sends);
                seen.starts += usize::from(starts);
                if counts {
                    seen.acted = false;
                }
                counts = changes || starts;
                seen.acted |= !counts && (is_starting(call) || SIGNALLING.contains(&call));
            }
            let begun = seen.files + seen.sent + seen.starts;
            if is_entry && counts {
                at_call(begun);
            }
            if counts && matches!(point, Some(KillPoint::Fail(n)) if n == begun) {
                fail(pid, is_entry)?;
            }
            let is_meant = match point {
                Some(KillPoint::Before(n)) => is_entry && counts && begun == n,
                Some(KillPoint::After(n)) => !is_entry && counts && begun == n,
                Some(KillPoint::Fail(_)) | None => false,
            };
            if is_meant {
                // At an entry stop the call is not made any more.
                super::kill_hard(pid);
            }
        }
        // SAFETY: no pointer is passed; signals of the program are not delivered, as none is awaited.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, 0) };
    }
}

fn is_starting(call: i64) -> bool {
    STARTING.contains(&call) || arch::STARTING.contains(&call)
}

/// Whether the call that is entered changes a file; with `or_syncs` also whether it is an fsync.
fn is_changing(registers: &Registers, or_syncs: bool) -> bool {
    let (call, [first, _, third]) = arch::call(registers);
    // What is printed changes no file; nor does an open that only reads.
    let is_printed = [libc::SYS_write, libc::SYS_writev].contains(&call) && first <= 2;
    let makes = u64::from((libc::O_CREAT | libc::O_TRUNC).cast_unsigned());
    let is_made = call == libc::SYS_openat && third & makes != 0;
    let is_sync = or_syncs && call == libc::SYS_fsync;
    let changes = CHANGING.contains(&call) || arch::CHANGING.contains(&call);
    is_made || is_sync || (changes && !is_printed)
}

fn is_to_socket(pid: i32, registers: &Registers) -> bool {
    let writes = [libc::SYS_write, libc::SYS_writev];
    let (call, [first, ..]) = arch::call(registers);
    let file = std::fs::read_link(format!("/proc/{pid}/fd/{first}"));
    writes.contains(&call)
        && file.is_ok_and(|file| file.as_os_str().as_encoded_bytes().starts_with(b"socket:"))
}

/// At its entry: the call is none, and not made. At its end: it failed.
fn fail(pid: i32, is_entry: bool) -> io::Result<()> {
    if is_entry {
        return arch::skip_call(pid);
    }
    let mut registers = registers(pid)?;
    arch::set_result(&mut registers, i64::from(-libc::EIO));
    set_registers(pid, registers)
}

/// Of a thread that has stopped.
pub fn registers(pid: i32) -> io::Result<Registers> {
    // SAFETY: all-zero bytes are valid registers, which are plain data.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    let mut place = libc::iovec {
        iov_base: (&raw mut registers).cast(),
        iov_len: size_of_val(&registers),
    };
    // SAFETY: `place` and the registers that it names are writable for the whole call.
    match unsafe {
        libc::ptrace(
            libc::PTRACE_GETREGSET,
            pid,
            libc::NT_PRSTATUS,
            &raw mut place,
        )
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(registers),
    }
}

pub fn set_registers(pid: i32, registers: Registers) -> io::Result<()> {
    set_register_set(pid, libc::NT_PRSTATUS, registers)
}

/// `content` has the layout of this set (ptrace(2), PTRACE_SETREGSET).
pub fn set_register_set<T: Copy>(pid: i32, set: i32, content: T) -> io::Result<()> {
    let mut content = content;
    let mut place = libc::iovec {
        iov_base: (&raw mut content).cast(),
        iov_len: size_of::<T>(),
    };
    // SAFETY: `place` and what it names are readable for the whole call.
    match unsafe { libc::ptrace(libc::PTRACE_SETREGSET, pid, set, &raw mut place) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
