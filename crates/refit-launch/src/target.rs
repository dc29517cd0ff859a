//! What an executable file is, and whether the preload can reach it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use refit_session::REASONS;

use crate::own_syscalls::has_own_syscalls;
use crate::sys::target as sys;

/// The kind of an executable file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Cannot be read, or is not a program.
    Unknown,
    /// Dynamic, glibc.
    Glibc,
    /// Dynamic, musl.
    Musl,
    /// Dynamic, another C library.
    OtherLibc,
    /// Static, static-pie included.
    Static,
    /// 32-bit, or of another machine.
    OtherArchitecture,
}

/// An executable as an exec would see it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The kind of the ELF file that runs.
    pub kind: Kind,
    /// Why the preload cannot reach it; `None` when it can.
    pub reason: Option<&'static str>,
    /// It makes system calls by instructions of its own, as Go does.
    pub own_calls: bool,
    /// The named file is a script, and `path` its interpreter.
    pub script: bool,
    /// The ELF file that runs.
    pub path: PathBuf,
    /// ld.so of the program, empty when static.
    pub interpreter: String,
}

impl Target {
    /// Looks at the file that an exec of `path` would run.
    #[must_use]
    pub fn look(path: &Path) -> Target {
        let seen = sys::look(path);
        let text = |bytes: &[u8]| {
            let end = bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len());
            bytes[..end].to_vec()
        };
        Target {
            kind: match seen.kind {
                1 => Kind::Glibc,
                2 => Kind::Musl,
                3 => Kind::OtherLibc,
                4 => Kind::Static,
                5 => Kind::OtherArchitecture,
                _ => Kind::Unknown,
            },
            reason: match seen.reason as usize {
                0 => None,
                reason => REASONS.get(reason).copied(),
            },
            own_calls: seen.own_calls != 0,
            script: seen.script != 0,
            path: PathBuf::from(OsStr::from_bytes(&text(&seen.path))),
            interpreter: String::from_utf8_lossy(&text(&seen.interpreter)).into_owned(),
        }
    }

    /// The preload sees all of its calls.
    #[must_use]
    pub fn is_seen_whole(&self) -> bool {
        matches!(self.kind, Kind::Glibc | Kind::Musl)
            && self.reason.is_none()
            && !self.own_calls
            && !has_own_syscalls(&self.path)
    }

    /// ld.so of this program would complain about our library, or the program
    /// refuse to start with it.
    #[must_use]
    pub fn rejects_library(&self) -> bool {
        matches!(self.kind, Kind::OtherArchitecture | Kind::OtherLibc)
            || self
                .reason
                .is_some_and(|reason| reason.starts_with("sanitizer"))
    }
}

/// The file that execvp(3) would run for `name`, given a `PATH`.
#[must_use]
pub fn find_in_path(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        let file = PathBuf::from(name);
        return file.exists().then_some(file);
    }
    let path = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    std::env::split_paths(path)
        .map(|dir| dir.join(name))
        .find(|file| {
            file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
        })
}
