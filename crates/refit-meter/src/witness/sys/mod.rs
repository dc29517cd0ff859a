//! The raw system calls of the witness that are not those of perf events.

mod tracefs;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use crate::perf::sys::owned;

pub use tracefs::Tracefs;

/// Opens a directory of a filesystem by its inode alone. The handle is that of
/// most filesystems (linux/exportfs.h, FILEID_INO32_GEN); generation 0 stands
/// for any on ext4 (`ext4_nfs_get_inode`), elsewhere nothing is found.
pub fn open_inode(mount: &File, inode: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        inode: u32,
        generation: u32,
    }
    let mut handle = Handle {
        bytes: 8,
        kind: 1,
        inode,
        generation: 0,
    };
    // SAFETY: the handle has as many bytes after its header as it declares.
    owned(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            &raw mut handle,
            libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC,
        )
    })
}

/// Where the kernel tells the path of an open file.
pub fn link_of(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}
