//! The interface of the kernel's tracepoints.

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use crate::perf::sys::{checked, owned};

/// linux/mount.h
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// linux/magic.h
const TRACEFS_MAGIC: i64 = 0x7472_6163;

/// Its root. Where nothing was mounted before, its end takes the kernel 0.03 ms, in
/// which a start need not wait.
pub struct Tracefs(OwnedFd);

impl Tracefs {
    /// Where systemd mounts it, or else one of this process alone: no directory
    /// shows that, and it goes with the descriptor.
    pub fn open() -> io::Result<Tracefs> {
        Tracefs::mounted().or_else(|_| Tracefs::hidden())
    }

    /// Saves the mounting and, at the end, the unmounting.
    fn mounted() -> io::Result<Tracefs> {
        // SAFETY: a NUL-terminated path.
        let root = owned(unsafe {
            libc::open(
                c"/sys/kernel/tracing".as_ptr(),
                libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC,
            )
            .into()
        })?;
        let mut kind = MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: fstatfs fills the structure, unless it fails.
        let kind = unsafe {
            checked(libc::fstatfs(root.as_raw_fd(), kind.as_mut_ptr()).into())?;
            kind.assume_init().f_type
        };
        if kind == TRACEFS_MAGIC {
            Ok(Tracefs(root))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn hidden() -> io::Result<Tracefs> {
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
        let file = owned(unsafe {
            libc::openat(
                self.0.as_raw_fd(),
                path.as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
            .into()
        })?;
        // Of a size that fstat does not tell; few are longer.
        let mut text = String::with_capacity(4096);
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }
}
