//! Opens with O_SYNC or O_DSYNC where that is off: a process of its own opens
//! the file without, exactly as the program would have, and hands it over.
//!
//! It answers only what succeeds. Whatever fails, is not a regular file, or cannot
//! be done in the same way (another user namespace, another label, a path through
//! /proc/self) had no effect and is left to the kernel, synchronous. It claims
//! the call before it does anything that could be seen, so that a killed
//! guardian's successor knows to wait for it: the same open, done twice, could
//! fail with EEXIST. For the same reason another process ([`Standby`]) completes
//! what it has begun where it is killed itself after it created a file.

use std::ffi::{CStr, OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, readlinkat,
    statx,
};
use rustix::process::{Pid, chroot, fchdir, getpid, getppid};

use super::filesystems::Filesystems;
use super::identity::{Identity, is_apart};
use super::look::{self, Thread};
use super::request::{self, Request};
use super::rules::Rules;
use crate::sys::fork::Child;
use crate::sys::notify::{Answer, Notification, Slot, add_descriptor, answer, still_waits};
use crate::sys::standby::Standby;
use refit_session::Knob;
use refit_session::names::{GUARDIAN, OPENER};

/// In [`Slot::opener`] in place of the opener's pid: the program has its
/// descriptor, and the call is to be answered with it.
pub const OPENED: u32 = u32::MAX;
/// The same: the open fails, or the file's syncs are real.
pub const LEFT_TO_KERNEL: u32 = u32::MAX - 1;

/// A process that opens a file. The pid may belong to another one by now.
pub fn adopt_opener(pid: u32) -> Option<Child> {
    let names = [OPENER, GUARDIAN].map(CStr::to_bytes);
    let is_opener = look::name(pid).is_some_and(|name| names.contains(&&*name));
    Child::adopt(pid).ok().filter(|_| is_opener)
}

/// The process that goes on for a killed opener, once.
pub fn adopt_standby(slot: &Slot) -> Option<Child> {
    match slot.standby.swap(0, AcqRel) {
        0 => None,
        pid => adopt_opener(pid),
    }
}

/// One call, and how to decide it.
pub struct Opening<'a> {
    /// The rules.
    pub rules: &'a Rules<'a>,
    /// What is known about devices.
    pub filesystems: &'a mut Filesystems,
    /// Where the call waits.
    pub slot: &'a Slot,
    /// Through which it is answered.
    pub listener: BorrowedFd<'a>,
    /// The call.
    pub notification: &'a Notification,
    /// What it requests.
    pub request: Request,
    /// Basename of its executable.
    pub exe: &'a [u8],
}

/// Why the call is left to the kernel.
enum Left {
    /// It fails, or the file's syncs are real.
    ToKernel,
    /// It is not certain to be the same.
    Unclear,
}
use Left::Unclear;

impl From<io::Error> for Left {
    fn from(_: io::Error) -> Left {
        Unclear
    }
}

impl From<rustix::io::Errno> for Left {
    fn from(_: rustix::io::Errno) -> Left {
        Unclear
    }
}

fn fails(errno: rustix::io::Errno) -> Left {
    // A link through /proc/self is ELOOP here alone.
    if errno == rustix::io::Errno::LOOP {
        Unclear
    } else {
        Left::ToKernel
    }
}

/// The thread's root, as refit names it, and the directory that paths begin at.
struct Directories {
    root: PathBuf,
    base: OwnedFd,
    /// refit's own descriptors, to be looked at from another root.
    own: OwnedFd,
}

impl Opening<'_> {
    /// Opens the file. The process cannot be used for anything else afterwards.
    pub fn run(mut self) {
        let _ = rustix::thread::set_name(OPENER);
        let maker = getppid();
        // The active process looks there when this one has ended.
        match self.try_run(maker) {
            Ok(descriptor) => {
                // Otherwise the active process would, a little later.
                answer(
                    self.listener,
                    self.notification.id,
                    Answer::Value(descriptor),
                );
            }
            Err(Left::ToKernel) if self.claim(maker).is_ok() => {
                self.slot.opener.store(LEFT_TO_KERNEL, Release);
            }
            Err(_) => {}
        }
    }

    fn try_run(&mut self, maker: Option<Pid>) -> Result<i32, Left> {
        let tid = self.notification.tid;
        let path = request::path(tid, self.request.path).ok_or(Unclear)?;
        let identity = Identity::of(tid).ok_or(Unclear)?;
        let own = Identity::own().ok_or(Unclear)?;
        let by_path = self.rules.by_path(Knob::Sync, self.exe);
        let shares_mounts = Thread::open(tid).ok_or(Unclear)?.shares_mounts();
        if is_apart(tid) || !has_room(tid) || (by_path && !shares_mounts) {
            return Err(Unclear);
        }
        let at = self.enter(&path, shares_mounts)?;
        // The id is still valid, so what was read before is of that thread.
        if !still_waits(self.listener, self.notification.id) {
            return Err(Unclear);
        }
        identity.assume(&own)?;
        let (target, creates) = self.target(&path, &at)?;
        if !self.rules.swapped(Knob::Sync, self.exe, Some(&target)) {
            return Err(Left::ToKernel);
        }
        self.claim(maker)?;
        if !still_waits(self.listener, self.notification.id) {
            return Err(Unclear);
        }
        let standby = if creates {
            Some(self.start_standby()?)
        } else {
            None
        };
        let given = match self.open(&path, &at) {
            Ok(file) => self.give(file.as_fd()),
            Err(errno) => Err(fails(errno)),
        };
        // Who opens the file next, or unmounts it, meets no other user of it.
        if let Some(standby) = standby {
            standby.dismiss();
        }
        given
    }

    /// Gives the program a descriptor of the file. A process that is killed
    /// between the two steps costs it a second descriptor.
    fn give(&self, file: BorrowedFd<'_>) -> Result<i32, Left> {
        if kind_of(&file)? != FileType::RegularFile {
            return Err(Unclear);
        }
        let close_on_exec = self.request.has(libc::O_CLOEXEC);
        let id = self.notification.id;
        let descriptor = add_descriptor(self.listener, id, file, close_on_exec)?;
        self.slot.descriptor.store(descriptor, Release);
        self.slot.opener.store(OPENED, Release);
        Ok(descriptor)
    }

    fn start_standby(&self) -> Result<Standby, Left> {
        let own = own_pid();
        let standby = Standby::start(|file| {
            // Otherwise it was killed when this was done, or left to the kernel.
            if self.slot.opener.load(Acquire) == own {
                let _ = self.give(file);
            }
        })?;
        self.slot
            .standby
            .store(standby.pid.cast_unsigned(), Release);
        Ok(standby)
    }

    /// Waits until the active process has stored its pid, or was killed.
    fn claim(&self, maker: Option<Pid>) -> Result<(), Left> {
        while self.slot.opener.load(Acquire) != own_pid() {
            if getppid() != maker {
                return Err(Unclear);
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Changes to the root, the directory and the identity of the thread.
    fn enter(&self, path: &CStr, shares_mounts: bool) -> Result<Directories, Left> {
        let tid = self.notification.tid;
        let directory =
            |path: &str| openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let base = match self.request.directory {
            _ if path.to_bytes().starts_with(b"/") => directory(&format!("/proc/{tid}/root"))?,
            libc::AT_FDCWD => directory(&format!("/proc/{tid}/cwd"))?,
            fd => directory(&format!("/proc/{tid}/fd/{fd}"))?,
        };
        let own = directory("/proc/self/fd")?;
        let root = format!("/proc/{tid}/root");
        let name = readlinkat(CWD, &root, Vec::new())?.into_bytes();
        let name = PathBuf::from(OsString::from_vec(name));
        let start = readlinkat(&own, base.as_raw_fd().to_string(), Vec::new())?;
        // The kernel shows other paths to a process outside of that root.
        if !Path::new(OsStr::from_bytes(start.to_bytes())).starts_with(&name) {
            return Err(Unclear);
        }
        if name != Path::new("/") || !shares_mounts {
            fchdir(directory(&root)?)?;
            chroot(".")?;
        }
        Ok(Directories {
            root: name,
            base,
            own,
        })
    }

    /// The path, as refit sees it, of the file that will be opened, and whether it
    /// will be created.
    fn target(&mut self, path: &CStr, at: &Directories) -> Result<(PathBuf, bool), Left> {
        let exclusive = self.request.has(libc::O_CREAT | libc::O_EXCL);
        let follow = !exclusive && !self.request.has(libc::O_NOFOLLOW);
        let (file, name) = match self.look(path, at, follow) {
            Ok(_) if exclusive => return Err(Left::ToKernel),
            Ok(file) => {
                if kind_of(&file)? != FileType::RegularFile {
                    return Err(Unclear);
                }
                (file, None)
            }
            Err(rustix::io::Errno::NOENT) if self.request.has(libc::O_CREAT) => {
                // A dangling link.
                if self.look(path, at, false).is_ok() {
                    return Err(Unclear);
                }
                let (parent, name) = split(path.to_bytes()).ok_or(Unclear)?;
                (self.look_at(parent, at).map_err(fails)?, Some(name))
            }
            Err(errno) => return Err(fails(errno)),
        };
        let device = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
        let device = libc::makedev(device.stx_dev_major, device.stx_dev_minor);
        if !self.filesystems.sync_files(device, self.notification.tid) {
            return Err(Unclear);
        }
        let seen = readlinkat(&at.own, file.as_raw_fd().to_string(), Vec::new())?;
        let seen = OsStr::from_bytes(seen.to_bytes());
        let inside = Path::new(seen).strip_prefix("/").map_err(|_| Unclear)?;
        let mut target = at.root.join(inside);
        target.extend(name.map(OsStr::from_bytes));
        Ok((target, name.is_some()))
    }

    fn look(&self, path: &CStr, at: &Directories, follow: bool) -> rustix::io::Result<OwnedFd> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        openat2(&at.base, path, flags, Mode::empty(), self.resolve())
    }

    fn look_at(&self, parent: &[u8], at: &Directories) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY;
        openat2(&at.base, parent, flags, Mode::empty(), self.resolve())
    }

    /// /proc/self/fd/1 and the like would be the opener's own.
    fn resolve(&self) -> ResolveFlags {
        ResolveFlags::from_bits_retain(self.request.resolve) | ResolveFlags::NO_MAGICLINKS
    }

    fn open(&self, path: &CStr, at: &Directories) -> rustix::io::Result<OwnedFd> {
        let request = &self.request;
        let flags = OFlags::from_bits_retain(request.flags & !crate::filter::SYNC_BITS);
        // openat2(2) refuses a mode without a use; open(2) ignores it.
        let mode = if request.has(libc::O_CREAT) {
            Mode::from_raw_mode(request.mode)
        } else {
            Mode::empty()
        };
        openat2(
            &at.base,
            path,
            flags | OFlags::CLOEXEC,
            mode,
            self.resolve(),
        )
    }
}

fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get().cast_unsigned()
}

fn kind_of(file: &impl AsFd) -> Result<FileType, Left> {
    let seen = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    Ok(FileType::from_raw_mode(seen.stx_mode.into()))
}

/// Directory and name of a file that does not exist yet.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (&path[..1], &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&b"."[..], path),
    };
    (!name.is_empty() && name != b"." && name != b"..").then_some((parent, name))
}

/// The kernel looks for a free descriptor before it creates or empties a file;
/// here that comes later, so there has to be one for certain.
fn has_room(tid: u32) -> bool {
    const SPARE: usize = 64;
    let limits = fs::read_to_string(format!("/proc/{tid}/limits")).unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    let used = fs::read_dir(format!("/proc/{tid}/fd")).map(Iterator::count);
    matches!((soft, used), (Some(soft), Ok(used)) if used + SPARE <= soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_has_a_directory_and_a_name() {
        let parts = |path: &'static str| {
            let (parent, name) = split(path.as_bytes())?;
            Some((
                str::from_utf8(parent).unwrap(),
                str::from_utf8(name).unwrap(),
            ))
        };
        assert_eq!(parts("a"), Some((".", "a")));
        assert_eq!(parts("/a"), Some(("/", "a")));
        assert_eq!(parts("x/../y/a"), Some(("x/../y", "a")));
        for path in ["", "/", "a/", "a/.", ".."] {
            assert_eq!(parts(path), None, "{path}");
        }
    }

    #[test]
    fn this_process_has_room_for_a_descriptor() {
        assert!(has_room(std::process::id()));
    }
}
