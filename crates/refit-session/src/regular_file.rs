//! Files whose names come from somebody else.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

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
}
