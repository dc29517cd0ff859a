//! What a waiting thread's call is about, read from /proc.
//!
//! Descriptors are only looked at, never fetched (pidfd_getfd(2)): closing a copy
//! writes an NFS file back and waits for a FUSE server (the `flush` of
//! fs/nfs/file.c and fs/fuse/file.c).

use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, openat, readlinkat, statx};
use rustix::process::{Resource, getrlimit};

/// The mark after the path of a file that has no name any more
/// (proc_pid_fd(5)).
const DELETED: &[u8] = b" (deleted)";

/// The last part of a path.
pub fn basename(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The name that a process gave itself.
pub fn name(pid: u32) -> Option<Vec<u8>> {
    let mut name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    name.pop();
    Some(name)
}

/// A thread, by its directory in /proc: whatever is looked up there is that thread's
/// for as long as it lives, and not found afterwards, even if another gets its
/// number (fs/proc/base.c).
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// /proc/TID, and /proc/TID/fd.
    directory: OwnedFd,
    files: OwnedFd,
}

impl Thread {
    /// `None`: it has ended, or there is no descriptor left.
    pub fn open(tid: u32) -> Option<Thread> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, format!("/proc/{tid}"), flags, Mode::empty()).ok()?;
        let files = openat(&directory, c"fd", flags, Mode::empty()).ok()?;
        Some(Thread {
            tid,
            directory,
            files,
        })
    }

    /// Its executable as refit sees it; `None` when it is unknown, or has ended.
    pub fn executable(&self) -> Option<Vec<u8>> {
        let mut path = self.link(c"exe")?;
        if path.ends_with(DELETED) {
            path.truncate(path.len() - DELETED.len());
        }
        Some(path)
    }

    /// Its process.
    pub fn process(&self) -> Option<u32> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let status = openat(&self.directory, c"status", flags, Mode::empty()).ok()?;
        let status = io::read_to_string(File::from(status)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
        line.trim().parse().ok()
    }

    /// Whether it has refit's mounts, so that paths mean the same to both, except for
    /// its root.
    pub fn shares_mounts(&self) -> bool {
        static OWN: OnceLock<Option<Vec<u8>>> = OnceLock::new();
        let own = OWN.get_or_init(|| link(CWD, c"/proc/self/ns/mnt"));
        own.is_some() && *own == self.link(c"ns/mnt")
    }

    fn link(&self, name: &CStr) -> Option<Vec<u8>> {
        link(self.directory.as_fd(), name)
    }
}

fn link(directory: BorrowedFd<'_>, name: &CStr) -> Option<Vec<u8>> {
    let text = readlinkat(directory, name, Vec::new()).ok()?;
    Some(text.into_bytes())
}

/// The threads that called last. To open their directories each time would cost as
/// much as the looks themselves.
pub struct Threads(Vec<Option<Thread>>);

impl Threads {
    /// Room for some, as far as this process may open descriptors.
    pub fn new() -> Threads {
        const MOST: u64 = 64;
        const OTHERS: u64 = 64;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let room = (limit.saturating_sub(OTHERS) / 2).clamp(1, MOST);
        Threads((0..room).map(|_| None).collect())
    }

    /// A thread and its executable; `None`: it has ended, or is unknown.
    pub fn of(&mut self, tid: u32) -> Option<(&Thread, Vec<u8>)> {
        let place = tid as usize % self.0.len();
        let entry = &mut self.0[place];
        let known = entry.as_ref().filter(|thread| thread.tid == tid);
        if let Some(executable) = known.and_then(Thread::executable) {
            return Some((entry.as_ref()?, executable));
        }
        *entry = None;
        let thread = Thread::open(tid)?;
        let executable = thread.executable()?;
        Some((entry.insert(thread), executable))
    }
}

/// An open file of a thread.
pub struct OpenFile<'a> {
    files: BorrowedFd<'a>,
    number: CString,
    kind: FileType,
    links: u32,
    /// st_dev.
    pub device: u64,
}

impl OpenFile<'_> {
    /// `None`: there is none, it was opened with O_PATH, or it is unknown.
    pub fn of(thread: &Thread, fd: i32) -> Option<OpenFile<'_>> {
        let files = thread.files.as_fd();
        let number = CString::new(fd.to_string()).ok()?;
        let itself = AtFlags::SYMLINK_NOFOLLOW;
        // The link of an O_PATH descriptor has no permissions (fs/proc/fd.c), nor has that of one that is open for neither
        // reading nor writing, whose syncs stay real.
        let link = statx(files, &number, itself, StatxFlags::MODE).ok()?;
        if link.stx_mode & 0o700 == 0 {
            return None;
        }
        // The answer of a network file system's server does not matter.
        let wanted = StatxFlags::TYPE | StatxFlags::NLINK;
        let seen = statx(files, &number, AtFlags::STATX_DONT_SYNC, wanted).ok()?;
        Some(OpenFile {
            files,
            number,
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
        let mut path = link(self.files, &self.number)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_not_taken_for_another() {
        let mut threads = Threads::new();
        let mut child = std::process::Command::new("/bin/sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let tid = child.id();
        let (thread, executable) = threads.of(tid).unwrap();
        assert_eq!(thread.process(), Some(tid));
        assert!(OpenFile::of(thread, 0).is_some());
        assert!(OpenFile::of(thread, 99).is_none());
        assert!(!executable.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(threads.of(tid).is_none());
    }

    #[test]
    fn an_exec_is_seen() {
        let mut threads = Threads::new();
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "read line; exec /bin/cat"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (_, before) = threads.of(child.id()).unwrap();
        let mut input = child.stdin.take().unwrap();
        io::Write::write_all(&mut input, b"\n").unwrap();
        while threads.of(child.id()).unwrap().1 == before {
            std::thread::yield_now();
        }
        drop(input);
        child.wait().unwrap();
    }

    #[test]
    fn an_opened_path_is_no_open_file() {
        let path = openat(CWD, "/", OFlags::PATH, Mode::empty()).unwrap();
        let own = Thread::open(std::process::id()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&path);
        assert!(OpenFile::of(&own, number).is_none());
        assert!(own.shares_mounts());
    }
}
