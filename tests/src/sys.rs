//! The system calls that std has no name for. All `unsafe` of the product tests is here.

pub mod arch;
pub mod inside;
pub mod kill_point;
pub mod opened_files;
pub mod pty;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Effective user id.
pub fn euid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether there is clone3(2), with its flags: a container's filter may say that it is not there.
pub fn has_clone3() -> bool {
    // SAFETY: of a structure of no size nothing is read, and the kernel refuses it.
    unsafe { libc::syscall(libc::SYS_clone3, std::ptr::null::<u8>(), 0) };
    io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
}

/// Sends SIGKILL to one process (`pid`) or, for a negative `pid`, to the process group `-pid`.
pub fn kill_hard(pid: i32) {
    send_signal(pid, libc::SIGKILL);
}

/// Sends `signal` as kill(2) does; a process that has ended already is not an error.
pub fn send_signal(pid: i32, signal: i32) {
    assert!(
        pid != 0 && pid != -1,
        "0 and -1 would reach processes that are not ours"
    );
    // SAFETY: kill takes two integers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

/// Asks the kernel to kill this process when the thread that started it ends.
pub fn die_with_parent() {
    // SAFETY: PR_SET_PDEATHSIG takes one integer and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Gives the signals that ask a process to end their usual effect again: a background job of a shell ignores
/// SIGINT, the runner blocks it, and so would every program that a test starts.
pub fn usual_signals() {
    let set = interruptions();
    // SAFETY: `set` is a valid set; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: SIG_DFL installs no handler of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Blocks the signals that ask this process to end; `next_interruption` receives them. For the main thread,
/// before it starts others. What it starts inherits that: see `usual_signals`.
pub fn block_interruptions() {
    let set = interruptions();
    // SAFETY: `set` is a valid set; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for a signal that asks this process to end.
pub fn next_interruption() -> i32 {
    let (set, mut signal) = (interruptions(), 0);
    // SAFETY: both pointers are valid for the whole call.
    unsafe { libc::sigwait(&raw const set, &raw mut signal) };
    signal
}

fn interruptions() -> libc::sigset_t {
    // SAFETY: all-zero bytes are a valid sigset_t, which is plain data.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: `set` is valid, and the signals exist.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Lets this thread alone be another user, in a group of the same number: libc's own functions change all of a process.
pub fn become_user(id: u32) -> io::Result<()> {
    let none = std::ptr::null::<libc::gid_t>();
    // SAFETY: these calls take numbers, and an empty list.
    let results = unsafe {
        [
            libc::syscall(libc::SYS_setgroups, 0, none),
            libc::syscall(libc::SYS_setresgid, id, id, id),
            libc::syscall(libc::SYS_setresuid, id, id, id),
        ]
    };
    match results {
        [0, 0, 0] => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until the process `pid` has ended; a child is not reaped (its id, and its group's, stay taken).
/// False when it has not ended within `limit`.
pub fn ended_within(pid: u32, limit: Duration) -> io::Result<bool> {
    // SAFETY: pidfd_open takes two integers; a result that is not negative is a fresh descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).expect("descriptors are ints");
    // SAFETY: nobody else knows this descriptor yet.
    let pidfd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut ready = libc::pollfd {
        fd: pidfd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let limit_ms = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `ready` is one valid pollfd for the whole call.
    match unsafe { libc::poll(&raw mut ready, 1, limit_ms) } {
        -1 => Err(io::Error::last_os_error()),
        count => Ok(count == 1),
    }
}

/// Reads of this file wait for nothing from now on.
pub fn set_nonblocking(file: &File) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: F_GETFL and F_SETFL take integers, and the descriptor is open.
    let status = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Processor time that the calling thread has used.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable for the whole call.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "every Linux has this clock");
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(i64::unsigned_abs);
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}

/// Whether `path` lies on a filesystem that is only memory, where no sync reaches anything.
pub fn is_memory_filesystem(path: &Path) -> io::Result<bool> {
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    let c_path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: all-zero bytes are a valid statfs, which is plain data.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `c_path` ends with NUL and `stat` is writable, both for the whole call.
    if unsafe { libc::statfs(c_path.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // The type of f_type differs between libcs; its value is a small constant in each.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    let kind = stat.f_type as u64;
    Ok(kind == libc::TMPFS_MAGIC as u64 || kind == RAMFS_MAGIC)
}

/// Sets an extended attribute.
pub fn set_xattr(path: &Path, name: &str, value: &[u8]) -> io::Result<()> {
    let (path, name) = (
        CString::new(path.as_os_str().as_bytes())?,
        CString::new(name)?,
    );
    // SAFETY: both names end with NUL, and `value` has this length, all for the whole call.
    let status = unsafe {
        libc::lsetxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An extended attribute of at most 1024 bytes; `None` where there is none.
pub fn xattr(path: &Path, name: &str) -> Option<Vec<u8>> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let name = CString::new(name).ok()?;
    let mut value = vec![0_u8; 1024];
    // SAFETY: both names end with NUL, and `value` is writable for its length, all for the whole call.
    let length = unsafe {
        libc::lgetxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

/// Sets the umask of this process, which is one test's alone; the one before it.
pub fn set_umask(mask: u32) -> u32 {
    // SAFETY: umask(2) takes a number and cannot fail.
    unsafe { libc::umask(mask) }
}
