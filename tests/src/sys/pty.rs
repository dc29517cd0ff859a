//! A pseudo-terminal (pty(7)): opened, and made the controlling terminal of a process that leads a session.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Opens a terminal; the side of the person who types, and the programs' side.
fn open() -> io::Result<(File, OwnedFd)> {
    // SAFETY: takes an integer; a result that is not negative is a fresh descriptor, nobody else's.
    let master = unsafe {
        let fd = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let unlocked: libc::c_int = 0;
    // SAFETY: TIOCSPTLCK reads one int, which outlives the call; TIOCGPTPEER takes flags and returns a fresh
    // descriptor (ioctl_tty(2)), whatever mount of devpts is seen here.
    let slave = unsafe {
        if libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let fd = libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    Ok((master.into(), slave))
}

/// Starts a command on a terminal of its own, in its foreground; the child, and the side of the person.
pub fn spawn(mut command: Command) -> io::Result<(Child, File)> {
    let (person, terminal) = open()?;
    command
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal);
    // SAFETY: between fork and exec setsid and ioctl are async-signal-safe, and descriptor 0 is the terminal.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    // The command, and with it our copies of the programs' side, goes out of scope here: the person reads an
    // end when the last program has gone.
    Ok((command.spawn()?, person))
}
