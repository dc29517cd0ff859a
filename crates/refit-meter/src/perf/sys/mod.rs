//! The raw system calls of perf events.

mod events;
mod mapping;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

pub use events::{
    ProcessorTime, Sampled, close_in_background, enable, losses, redirect, sample_processor_time,
    watch_processes, watch_tracepoint,
};
pub use mapping::Mapping;

/// What a system call returned, where it is no error.
pub fn checked(result: libc::c_long) -> io::Result<RawFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(io::Error::other)
}

/// Takes the descriptor that a system call returned.
pub fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = checked(result)?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
