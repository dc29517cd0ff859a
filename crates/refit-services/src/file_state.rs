//! A file as it is: bytes, mode, owner, flags, extended attributes.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    IFlags, XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr, ioctl_getflags,
    ioctl_setflags,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant's message is its description
pub enum FileError {
    #[error("{} is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("{0} has other names (hard links), which would keep the old content\n  first: cp -p {0} {0}.new && mv {0}.new {0}", path.display())]
    OtherNames { path: PathBuf },
    #[error("{0} gives who executes it its owner's or group's rights, and refit writes no such file\n  first: chmod ug-s {0}", path.display())]
    SetId { path: PathBuf },
    #[error("{0} is immutable or append-only\n  first: chattr -i -a {0}", path.display())]
    Immutable { path: PathBuf },
    #[error("{} is in the way: something put it there", path.display())]
    Taken { path: PathBuf },
    #[error("{} was edited by somebody else at the same time, and that edit is kept", path.display())]
    Edited { path: PathBuf },
    #[error("{}", path.display())]
    Failed {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

impl FileError {
    /// What failed at `path`: for `map_err`.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> FileError {
        |cause| FileError::Failed {
            path: path.to_owned(),
            cause,
        }
    }
}

/// Bytes as a record holds them: text where they are, so that a person can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Content {
    Text(String),
    Hex(String),
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Content {
        match String::from_utf8(bytes) {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Hex(hex(error.as_bytes())),
        }
    }
}

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    content: Content,
    mode: u32,
    uid: u32,
    gid: u32,
    /// Of chattr(1), as FS_IOC_GETFLAGS has them.
    #[serde(default, skip_serializing_if = "is_zero")]
    flags: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    xattrs: BTreeMap<String, String>,
}

impl FileState {
    /// A new file of this process's user, mode 0644.
    #[must_use]
    pub fn own(bytes: Vec<u8>) -> FileState {
        FileState {
            content: bytes.into(),
            mode: 0o644,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            flags: 0,
            xattrs: BTreeMap::new(),
        }
    }

    /// Likewise, mode 0755.
    #[must_use]
    pub fn executable(bytes: Vec<u8>) -> FileState {
        FileState {
            mode: 0o755,
            ..FileState::own(bytes)
        }
    }

    /// This file with other bytes.
    #[must_use]
    pub fn with_bytes(&self, bytes: Vec<u8>) -> FileState {
        FileState {
            content: bytes.into(),
            ..self.clone()
        }
    }

    /// What it holds.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match &self.content {
            Content::Text(text) => text.as_bytes().to_vec(),
            Content::Hex(digits) => unhex(digits),
        }
    }

    /// Mode and owner, as ls(1) names them by number.
    #[must_use]
    pub fn access(&self) -> String {
        format!("mode {:04o}, owner {}:{}", self.mode, self.uid, self.gid)
    }

    /// An open file as it is.
    ///
    /// # Errors
    /// What the system reports.
    pub fn of(mut file: File) -> io::Result<FileState> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let meta = file.metadata()?;
        Ok(FileState {
            content: bytes.into(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            flags: flags(&file)?.bits(),
            xattrs: xattrs(&file)?,
        })
    }

    /// Gives a new file all but the content.
    ///
    /// # Errors
    /// What the system reports.
    pub(crate) fn put_on(&self, file: &File) -> io::Result<()> {
        let meta = file.metadata()?;
        if (meta.uid(), meta.gid()) != (self.uid, self.gid) {
            fchown(file, Some(self.uid), Some(self.gid))?;
        }
        file.set_permissions(Permissions::from_mode(self.mode))?;
        // Those that a directory gives to each new file: a default ACL.
        for name in xattrs(file)?.keys() {
            if !self.xattrs.contains_key(name) {
                fremovexattr(file, name.as_str())?;
            }
        }
        for (name, value) in &self.xattrs {
            fsetxattr(file, name.as_str(), &unhex(value), XattrFlags::empty())?;
        }
        // Likewise, a directory's own flags.
        if flags(file)?.bits() != self.flags {
            let others = ioctl_getflags(file)? - SETTABLE;
            ioctl_setflags(file, others | IFlags::from_bits_retain(self.flags))?;
        }
        Ok(())
    }

    /// Whether it differs from another in nothing but its content.
    #[must_use]
    pub fn has_access_of(&self, other: &FileState) -> bool {
        self.with_bytes(Vec::new()) == other.with_bytes(Vec::new())
    }

    /// Whether who executes it has its owner's or group's rights (execve(2)).
    #[must_use]
    pub fn is_set_id_program(&self) -> bool {
        let has = |bits| self.mode & bits == bits;
        (has(0o4000) && self.mode & 0o111 != 0) || has(0o2010)
    }
}

/// Flags of chattr(1) that a file's owner can set, and that go with its content: not `i` and `a`,
/// with which a file is not replaced.
const SETTABLE: IFlags = IFlags::SYNC
    .union(IFlags::NODUMP)
    .union(IFlags::NOATIME)
    .union(IFlags::COMPRESSED)
    .union(IFlags::NOCOW)
    .union(IFlags::JOURNALING);

/// None where the file system has none.
fn flags(file: &File) -> io::Result<IFlags> {
    match ioctl_getflags(file) {
        Ok(flags) => Ok(flags & SETTABLE),
        Err(Errno::NOTTY | Errno::NOTSUP | Errno::INVAL | Errno::NOSYS) => Ok(IFlags::empty()),
        Err(errno) => Err(errno.into()),
    }
}

/// Those that the kernel or a security module gives to each new file by itself are not a
/// property of the content.
const GIVEN: [&str; 3] = ["security.selinux", "security.ima", "security.evm"];

fn xattrs(file: &File) -> io::Result<BTreeMap<String, String>> {
    // The largest list and value that the kernel has: XATTR_LIST_MAX, XATTR_SIZE_MAX.
    let (mut names, mut value) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let length = match flistxattr(file, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => 0,
        Err(errno) => return Err(errno.into()),
    };
    let mut found = BTreeMap::new();
    let mut rest = &names[..length];
    while let Ok(name) = CStr::from_bytes_until_nul(rest) {
        rest = &rest[name.count_bytes() + 1..];
        let name = name.to_string_lossy().into_owned();
        if !GIVEN.contains(&&*name) {
            let length = fgetxattr(file, name.as_str(), &mut value)?;
            found.insert(name, hex(&value[..length]));
        }
    }
    Ok(found)
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    let byte = |pair| {
        std::str::from_utf8(pair)
            .ok()
            .map(|text| u8::from_str_radix(text, 16))
    };
    pairs.filter_map(|pair| byte(pair)?.ok()).collect()
}

fn is_zero(flags: &u32) -> bool {
    *flags == 0
}
