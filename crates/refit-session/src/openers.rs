//! Opening of files by a path that somebody else gave, or in a directory where somebody else may write. None of these
//! waits for the other end of a FIFO, and none opens a device.
//!
//! - [`open_regular`]: a path that a user or a program gave. Links are followed; only a regular file is opened.
//! - [`open_own`], [`open_of`]: a name that refit made where others may write, too. Links are not followed; a file or
//!   directory of that user is opened.
//!
//! What lies below a directory that is held open has openers of its own: `place.rs` of refit-services, for files that are
//! changed, and `open.rs` of refit-crash, for records. `result_file.rs` of the command opens what is written.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;

/// Opens a regular file for reading, and nothing else: a FIFO would wait for its other end or wake who waits there,
/// and a device may act when it is opened.
///
/// # Errors
/// `InvalidInput` where it is not a regular file; else why it cannot be opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let found = File::from(rustix::fs::open(
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?);
    if !found.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Opens a file or directory of this user: [`open_of`].
#[must_use]
pub fn open_own(path: &Path) -> Option<File> {
    open_of(path, geteuid().as_raw())
}

/// Opens a file or directory of a user. Where another user can write, the name may be a link, or a pipe that an open
/// would wait for: `None`.
#[must_use]
pub fn open_of(path: &Path, uid: u32) -> Option<File> {
    let is_of = |about: &Metadata| (about.is_file() || about.is_dir()) && about.uid() == uid;
    // Before as well: opening a device can act on it.
    if !fs::symlink_metadata(path).is_ok_and(|about| is_of(&about)) {
        return None;
    }
    let (file, about) = open_unfollowed(path)?;
    is_of(&about).then_some(file)
}

/// Opens what has the name, which is no link, without waiting, and tells what it is.
pub(crate) fn open_unfollowed(path: &Path) -> Option<(File, Metadata)> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    Some((file, about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        assert!(open_regular(Path::new("/bin/true")).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for path in [&fifo, Path::new("/dev/null"), dir.path()] {
            let kind = open_regular(path).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }

    #[test]
    fn only_a_file_or_directory_of_the_user_is_opened_and_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let uid = geteuid().as_raw();
        for own in [&file, dir.path()] {
            assert!(open_own(own).is_some() && open_of(own, uid).is_some());
            assert!(open_of(own, uid + 1).is_none());
        }
        assert!(open_own(&link).is_none() && open_own(Path::new("/dev/null")).is_none());
    }
}
