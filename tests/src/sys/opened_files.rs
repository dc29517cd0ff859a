//! The files below a directory that any process opens: fanotify(7), as root.
//!
//! Directories are watched, not mounts: what a test opens through a mount or in a namespace of its own counts too.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Notifications about opened files.
pub struct OpenedFiles {
    group: OwnedFd,
}

impl OpenedFiles {
    /// Watches every directory below these, as they are now; links are not followed.
    pub fn below(roots: &[&Path]) -> io::Result<OpenedFiles> {
        let flags = libc::FAN_CLOEXEC
            | libc::FAN_CLASS_NOTIF
            | libc::FAN_UNLIMITED_QUEUE
            | libc::FAN_UNLIMITED_MARKS;
        let events = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE | libc::O_NOATIME;
        // SAFETY: takes two integers, and returns a new descriptor or -1.
        let group = unsafe { libc::fanotify_init(flags, events.cast_unsigned()) };
        if group < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made, and is nobody else's.
        let group = unsafe { OwnedFd::from_raw_fd(group) };
        let opened = OpenedFiles { group };
        let mut directories: Vec<PathBuf> = roots.iter().map(|root| root.to_path_buf()).collect();
        while let Some(directory) = directories.pop() {
            opened.mark(
                &directory,
                libc::FAN_MARK_ADD,
                libc::FAN_OPEN | libc::FAN_EVENT_ON_CHILD,
            )?;
            for entry in fs::read_dir(&directory)?.flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    directories.push(entry.path());
                }
            }
        }
        Ok(opened)
    }

    fn mark(&self, path: &Path, flags: u32, mask: u64) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: `path` is a C string that outlives the call; the kernel keeps nothing of it.
        let done = unsafe {
            libc::fanotify_mark(
                self.group.as_raw_fd(),
                flags,
                mask,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits until files are opened, and adds those that are new; false: the kernel lost some.
    pub fn read(&self, seen: &mut BTreeSet<PathBuf>) -> io::Result<bool> {
        // As aligned as the kernel's structures are.
        let mut buffer = [0_u64; 4096];
        let size = size_of::<libc::fanotify_event_metadata>();
        // SAFETY: the buffer is as long as is told, and ours alone.
        let length = unsafe {
            libc::read(
                self.group.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                size_of_val(&buffer),
            )
        };
        let Ok(length) = usize::try_from(length) else {
            return Err(io::Error::last_os_error());
        };
        let (mut at, mut complete) = (0, true);
        while at + size <= length {
            // SAFETY: that much of the buffer was filled with whole structures; each begins at a multiple of 8.
            let event = unsafe {
                buffer
                    .as_ptr()
                    .cast::<u8>()
                    .add(at)
                    .cast::<libc::fanotify_event_metadata>()
                    .read()
            };
            at += event.event_len as usize;
            if event.fd < 0 {
                complete &= event.mask & libc::FAN_Q_OVERFLOW == 0;
                continue;
            }
            // SAFETY: the kernel made this descriptor for us.
            let file = unsafe { File::from_raw_fd(event.fd) };
            let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            if let Ok(path) = fs::read_link(&link) {
                seen.insert(path);
            }
            // Once is enough. It does not matter where it fails: then the file is told of again.
            let _ = self.mark(
                &link,
                libc::FAN_MARK_ADD
                    | libc::FAN_MARK_IGNORED_MASK
                    | libc::FAN_MARK_IGNORED_SURV_MODIFY,
                libc::FAN_OPEN,
            );
        }
        Ok(complete)
    }
}
