//! A tracefs that no directory shows.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use super::{checked, owned};

/// linux/mount.h
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// The interface of the kernel's tracepoints, mounted for this process alone:
/// no directory shows it, and it goes with the descriptor.
pub struct Tracefs(OwnedFd);

impl Tracefs {
    pub fn open() -> io::Result<Tracefs> {
        // SAFETY: a NUL-terminated name and a flag.
        let context =
            owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1_u32) })?;
        // SAFETY: the descriptor is open; this command takes nothing more.
        checked(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                context.as_raw_fd(),
                FSCONFIG_CMD_CREATE,
                ptr::null::<u8>(),
                ptr::null::<u8>(),
                0,
            )
        })?;
        // SAFETY: the descriptor is open; FSMOUNT_CLOEXEC and no attributes.
        owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1_u32, 0_u32) })
            .map(Tracefs)
    }

    pub fn read(&self, path: &str) -> io::Result<String> {
        let path = std::ffi::CString::new(path)?;
        // SAFETY: the descriptor is open, the path ends with NUL.
        let file = unsafe {
            libc::openat(
                self.0.as_raw_fd(),
                path.as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        // Of a size unknown before; few are longer.
        let mut text = String::with_capacity(4096);
        File::from(owned(file.into())?).read_to_string(&mut text)?;
        Ok(text)
    }
}
