//! A file as it is: bytes, mode, owner, extended attributes; and putting it back so.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, StatxAttributes, StatxFlags, XattrFlags, fremovexattr, fsetxattr, lgetxattr,
    llistxattr, statx,
};
use serde::{Deserialize, Serialize};

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant's message is its description
pub enum FileError {
    #[error("{} is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("{0} has other names (hard links), which would keep the old content\n  first: cp -p {0} {0}.new && mv {0}.new {0}", path.display())]
    OtherNames { path: PathBuf },
    #[error("{0} is immutable or append-only\n  first: chattr -i -a {0}", path.display())]
    Immutable { path: PathBuf },
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

    /// The file at `path`, `None` where there is none.
    ///
    /// # Errors
    /// [`FileError::NotRegular`], or what the reads report.
    pub fn read(path: &Path) -> Result<Option<FileState>, FileError> {
        let failed = FileError::at(path);
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !meta.is_file() {
            return Err(FileError::NotRegular {
                path: path.to_owned(),
            });
        }
        Ok(Some(FileState {
            content: fs::read(path).map_err(&failed)?.into(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            xattrs: xattrs(path).map_err(&failed)?,
        }))
    }

    /// Puts it at `path`: a reader sees the old file or this one, never a part, and so does
    /// whoever looks after a power cut.
    ///
    /// # Errors
    /// [`FileError::Failed`]. The file at `path` is then the old one.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        self.stage(path)?.put()
    }

    /// Writes it beside `path`. Nothing is at `path` yet, but all that needs space is done.
    ///
    /// # Errors
    /// [`FileError::Failed`]; nothing is left then.
    pub fn stage(&self, path: &Path) -> Result<Staged, FileError> {
        let staged = Staged {
            path: path.to_owned(),
            is_put: false,
        };
        match self.write_to(&temporary(path)) {
            Ok(()) => Ok(staged),
            Err(cause) => Err(FileError::at(path)(cause)),
        }
    }

    fn write_to(&self, new: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(new)?;
        file.write_all(&self.bytes())?;
        let meta = file.metadata()?;
        if (meta.uid(), meta.gid()) != (self.uid, self.gid) {
            fchown(&file, Some(self.uid), Some(self.gid))?;
        }
        file.set_permissions(Permissions::from_mode(self.mode))?;
        // Those that a directory gives to each new file: a default ACL.
        for name in xattrs(new)?.keys() {
            if !self.xattrs.contains_key(name) {
                fremovexattr(&file, name.as_str())?;
            }
        }
        for (name, value) in &self.xattrs {
            fsetxattr(&file, name.as_str(), &unhex(value), XattrFlags::empty())?;
        }
        file.sync_all()
    }
}

/// A file that is whole and on the disk under its temporary name. Dropped, it is removed.
#[must_use]
pub struct Staged {
    path: PathBuf,
    is_put: bool,
}

impl Staged {
    /// Puts it in its place, for good. Needs no space.
    ///
    /// # Errors
    /// [`FileError::Failed`].
    pub fn put(mut self) -> Result<(), FileError> {
        fs::rename(temporary(&self.path), &self.path).map_err(FileError::at(&self.path))?;
        self.is_put = true;
        sync_directory(&self.path)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_put {
            let _ = fs::remove_file(temporary(&self.path));
        }
    }
}

/// The name under which a file is written before it is renamed. No program reads files with
/// such a name from its configuration directory.
pub fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.refit-new"))
}

/// Refuses an immutable file; and, unless `links`, one whose other names would keep the old content.
pub fn refuse_fixed(path: &Path, links: bool) -> Result<(), FileError> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let Ok(found) = statx(CWD, path, flags, StatxFlags::BASIC_STATS) else {
        return Ok(());
    };
    let path = path.to_owned();
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    if found.stx_attributes.intersects(fixed) {
        return Err(FileError::Immutable { path });
    }
    if !links && found.stx_nlink > 1 {
        return Err(FileError::OtherNames { path });
    }
    Ok(())
}

/// Removes a file, which may be gone already, for good.
pub fn remove(path: &Path) -> Result<(), FileError> {
    // A read-only file system refuses to remove what is not there, too.
    if let Err(error) = fs::symlink_metadata(path)
        && error.kind() == io::ErrorKind::NotFound
    {
        return Ok(());
    }
    match fs::remove_file(path) {
        Ok(()) => sync_directory(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(FileError::at(path)(cause)),
    }
}

/// What was made or removed at `path` is so after a power cut too.
pub fn sync_directory(path: &Path) -> Result<(), FileError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(FileError::at(parent))
}

/// Those that the kernel or a security module gives to each new file by itself are not a
/// property of the content.
const GIVEN: [&str; 3] = ["security.selinux", "security.ima", "security.evm"];

fn xattrs(path: &Path) -> io::Result<BTreeMap<String, String>> {
    // The largest list and value that the kernel has: XATTR_LIST_MAX, XATTR_SIZE_MAX.
    let (mut names, mut value) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let length = match llistxattr(path, &mut names) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => 0,
        Err(errno) => return Err(errno.into()),
    };
    let mut found = BTreeMap::new();
    let mut rest = &names[..length];
    while let Ok(name) = CStr::from_bytes_until_nul(rest) {
        rest = &rest[name.count_bytes() + 1..];
        let name = name.to_string_lossy().into_owned();
        if !GIVEN.contains(&&*name) {
            let length = lgetxattr(path, name.as_str(), &mut value)?;
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
