//! What an open requests, in registers or in memory.

use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::param::page_size;

use crate::arch::{COMPAT, LARGEFILE};
use crate::filter::{Call, SYNC_BITS};
use crate::sys::notify::Notification;

/// An open, in the terms of openat2(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// AT_FDCWD, or a descriptor of the thread's.
    pub directory: i32,
    /// Where the path lies in its memory.
    pub path: u64,
    /// O_*.
    pub flags: u32,
    /// Permissions of a new file, before the umask.
    pub mode: u32,
    /// RESOLVE_*.
    pub resolve: u64,
}

/// The flags that open(2) knows; it ignores all other bits, which openat2(2)
/// would refuse (VALID_OPEN_FLAGS, linux/fcntl.h).
const KNOWN: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_SYNC
    | libc::O_ASYNC
    | libc::O_DIRECT
    | LARGEFILE
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_PATH
    | libc::O_TMPFILE;

/// Size of struct open_how in its first version, and the most that the kernel
/// reads of a later one (a page, which has no fewer bytes).
const HOW: usize = 24;
const MOST: usize = 4096;

impl Request {
    /// Of a call that has it in registers; `None` for any other.
    pub fn of(call: Call, notification: &Notification) -> Option<Request> {
        let [a, b, c, d, ..] = notification.args;
        let known = |flags: u64| flags as u32 & KNOWN.cast_unsigned();
        Some(match call {
            Call::Open => Request {
                directory: libc::AT_FDCWD,
                path: a,
                flags: known(b),
                mode: c as u32 & 0o7777,
                resolve: 0,
            },
            Call::Openat => Request {
                directory: a as i32,
                path: b,
                flags: known(c),
                mode: d as u32 & 0o7777,
                resolve: 0,
            },
            _ => return None,
        })
    }

    /// What an openat2 requests; `None` when it is unknown, or the kernel refuses it.
    /// It can take for ever: see `reader.rs`.
    pub fn in_memory(notification: &Notification) -> Option<Request> {
        let [directory, path, how_at, size, ..] = notification.args;
        let size = usize::try_from(size)
            .ok()
            .filter(|size| (HOW..=MOST).contains(size))?;
        let mut how = vec![0; size];
        memory(notification.tid)?
            .read_exact_at(&mut how, how_at)
            .ok()?;
        // Fields of a later kernel, which are unknown here (E2BIG).
        if how[HOW..].iter().any(|byte| *byte != 0) {
            return None;
        }
        let word = |i: usize| {
            let bytes = how[8 * i..8 * i + 8].try_into();
            u64::from_ne_bytes(bytes.expect("eight bytes"))
        };
        let request = Request {
            directory: directory as i32,
            path,
            flags: u32::try_from(word(0)).ok()?,
            mode: u32::try_from(word(1)).ok()?,
            resolve: word(2),
        };
        // A mode without O_CREAT is refused.
        let creates = request.has(libc::O_CREAT) || request.has(libc::O_TMPFILE);
        (request.mode == 0 || creates).then_some(request)
    }

    /// For another process of the guardian's.
    pub fn words(&self) -> [u64; 5] {
        let directory = u64::from(self.directory.cast_unsigned());
        let (flags, mode) = (u64::from(self.flags), u64::from(self.mode));
        [directory, self.path, flags, mode, self.resolve]
    }

    /// The reverse.
    pub fn of_words([directory, path, flags, mode, resolve]: [u64; 5]) -> Request {
        Request {
            directory: directory as i32,
            path,
            flags: flags as u32,
            mode: mode as u32,
            resolve,
        }
    }

    /// Whether these bits are set.
    pub fn has(&self, bits: i32) -> bool {
        self.flags & bits.cast_unsigned() == bits.cast_unsigned()
    }

    /// Whether each write waits. With O_PATH there are no writes.
    pub fn is_sync(&self) -> bool {
        self.flags & SYNC_BITS != 0 && !self.has(libc::O_PATH)
    }

    /// Whether refit can do it as the kernel would: not a file without a name,
    /// and not one of a 32-bit program that ends at 2 GiB.
    pub fn is_plain(&self, arch: u32) -> bool {
        let narrow = arch == COMPAT.audit && !self.has(LARGEFILE);
        !narrow && !self.has(libc::O_TMPFILE) && !self.has(libc::O_ACCMODE)
    }
}

fn memory(tid: u32) -> Option<File> {
    File::open(format!("/proc/{tid}/mem")).ok()
}

/// The path at this address; `None`: there is none, or it is too long. It can take
/// for ever.
pub fn path(tid: u32, at: u64) -> Option<CString> {
    let page = page_size() as u64;
    let memory = memory(tid)?;
    let mut path = Vec::new();
    // Page by page: what follows its end may not be readable.
    while path.len() < libc::PATH_MAX as usize {
        let from = at.checked_add(path.len() as u64)?;
        let mut part = vec![0; (page - from % page) as usize];
        memory.read_exact_at(&mut part, from).ok()?;
        let end = part.iter().position(|byte| *byte == 0);
        path.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() {
            return CString::new(path).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::NATIVE;

    fn notification(args: [u64; 6]) -> Notification {
        Notification {
            id: 1,
            // The test's own memory stands for the program's.
            tid: std::process::id(),
            number: 0,
            arch: NATIVE.audit,
            args,
        }
    }

    #[test]
    fn openat2_is_read_from_memory() {
        let mut how = [0o4_010_101_u64, 0o640, 8, 0];
        let args = [5, 7, how.as_ptr().addr() as u64, 24, 0, 0];
        let of = |args| Request::in_memory(&notification(args));
        let request = of(args).unwrap();
        let expected = Request {
            directory: 5,
            path: 7,
            flags: 0o4_010_101,
            mode: 0o640,
            resolve: 8,
        };
        assert_eq!(request, expected);
        assert!(request.is_sync() && request.is_plain(NATIVE.audit));
        let larger = [5, 7, how.as_ptr().addr() as u64, 32, 0, 0];
        assert_eq!(of(larger), Some(expected));
        std::hint::black_box(&mut how)[3] = 1;
        assert_eq!(of(larger), None);
        std::hint::black_box(&mut how)[0] = 0o4_010_001;
        assert_eq!(of(args), None, "a mode, and nothing is created");
        let unreadable = [5, 7, 8, 24, 0, 0];
        assert_eq!(of(unreadable), None);
    }

    #[test]
    fn bits_that_open_ignores_are_left_out() {
        let args = [7, 1 << 31 | 1 << 40 | 0o10_002, 0o170_644, 0, 0, 0];
        let request = Request::of(Call::Open, &notification(args)).unwrap();
        assert_eq!((request.flags, request.mode), (0o10_002, 0o644));
        assert!(!request.is_plain(COMPAT.audit));
        assert!(request.is_plain(NATIVE.audit));
    }

    #[test]
    fn a_path_is_read_up_to_its_end() {
        let text = c"/some/where";
        let me = std::process::id();
        assert_eq!(path(me, text.as_ptr().addr() as u64).unwrap(), *text);
        assert_eq!(path(me, 8), None);
        let long = vec![b'x'; 3 * 4096];
        assert_eq!(path(me, long.as_ptr().addr() as u64), None);
    }
}
