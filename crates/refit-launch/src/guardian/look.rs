//! What a waiting thread's call is about, read from /proc.
//!
//! Descriptors are only looked at, never fetched (pidfd_getfd(2)): closing a copy
//! writes an NFS file back and waits for a FUSE server (the `flush` of
//! fs/nfs/file.c and fs/fuse/file.c).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, readlinkat, statx};

/// The mark after the path of a file that has no name any more
/// (proc_pid_fd(5)).
const DELETED: &[u8] = b" (deleted)";

/// The executable of a thread as refit sees it; `None` when it is unknown.
pub fn executable(tid: u32) -> Option<Vec<u8>> {
    let mut path = link(&format!("/proc/{tid}/exe"))?;
    if path.ends_with(DELETED) {
        path.truncate(path.len() - DELETED.len());
    }
    Some(path)
}

/// The last part of a path.
pub fn basename(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The process of a thread.
pub fn process(tid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The name that a process gave itself.
pub fn name(pid: u32) -> Option<Vec<u8>> {
    let mut name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    name.pop();
    Some(name)
}

/// Whether the thread has refit's mounts, so that paths mean the same to both,
/// except for its root.
pub fn shares_mounts(tid: u32) -> bool {
    static OWN: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let own = OWN.get_or_init(|| link("/proc/self/ns/mnt"));
    own.is_some() && *own == link(&format!("/proc/{tid}/ns/mnt"))
}

fn link(path: &str) -> Option<Vec<u8>> {
    let text = readlinkat(CWD, path, Vec::new()).ok()?;
    Some(text.into_bytes())
}

/// An open file of a thread.
pub struct OpenFile {
    entry: String,
    kind: FileType,
    links: u32,
    /// st_dev.
    pub device: u64,
}

impl OpenFile {
    /// `None`: there is none, it was opened with O_PATH, or it is unknown.
    pub fn of(tid: u32, fd: i32) -> Option<OpenFile> {
        let entry = format!("/proc/{tid}/fd/{fd}");
        let itself = AtFlags::SYMLINK_NOFOLLOW;
        // The link of an O_PATH descriptor has no permissions (fs/proc/fd.c).
        let link = statx(CWD, &entry, itself, StatxFlags::MODE).ok()?;
        if link.stx_mode & 0o700 == 0 {
            return None;
        }
        // The answer of a network file system's server does not matter.
        let wanted = StatxFlags::TYPE | StatxFlags::NLINK;
        let seen = statx(CWD, &entry, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
        Some(OpenFile {
            entry,
            kind: FileType::from_raw_mode(seen.stx_mode.into()),
            links: seen.stx_nlink,
            device: libc::makedev(seen.stx_dev_major, seen.stx_dev_minor),
        })
    }

    /// Whether it is a file or a directory. Calls on anything else go to the kernel.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, FileType::RegularFile | FileType::Directory)
    }

    /// Its path as refit sees it; empty where it has none, as a pipe.
    pub fn path(&self) -> Option<PathBuf> {
        let mut path = link(&self.entry)?;
        if !path.starts_with(b"/") {
            path.clear();
        }
        // A file's name may also end like that.
        if self.links == 0 && path.ends_with(DELETED) {
            path.truncate(path.len() - DELETED.len());
        }
        Some(OsString::from_vec(path).into())
    }
}
