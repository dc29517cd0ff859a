//! A process that serves a disk as a file, for a loop device.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::{CrashError, io_error, unwritable};
use crate::filesystem::unmount;
use crate::fuse::{CONTROL, DISK, Disk, serve};
use crate::isolated::pipe;
use crate::private_mounts;
use crate::sys::loopback::{Access, Loop};
use crate::sys::process::{Child, fork, serve_io};

const NO_LOOP: &str = "cannot attach a loop device (losetup -a lists those in use; in a container the nodes /dev/loop* may be missing)";

/// A served disk: its process, until it is unmounted.
pub struct DiskServer {
    child: Child,
    at: PathBuf,
}

impl DiskServer {
    /// Serves the disk that `make` returns, in a process of its own, at `at`.
    ///
    /// # Errors
    /// It cannot be made or mounted.
    pub fn start<D: Disk>(
        at: &Path,
        make: impl FnOnce() -> Result<D, CrashError>,
    ) -> Result<DiskServer, CrashError> {
        fs::create_dir_all(at).map_err(unwritable(at))?;
        let (from, to) = pipe()?;
        let child = fork(|| {
            serve_io();
            let made = make().map_err(|error| error.to_string());
            let served = made.and_then(|disk| {
                let mounted = || {
                    private_mounts::leave()?;
                    send(&to, "ready");
                    Ok(())
                };
                serve(disk, at, mounted).map_err(|error| error.to_string())
            });
            match served {
                Ok(()) => 0,
                Err(error) => {
                    send(&to, &error);
                    1
                }
            }
        })
        .map_err(io_error("cannot fork"))?;
        drop(to);
        let mut buffer = [0; 1024];
        let length = File::from(from).read(&mut buffer).unwrap_or(0);
        match &buffer[..length] {
            b"ready" => Ok(DiskServer {
                child,
                at: at.to_owned(),
            }),
            error => Err(CrashError::Refused(format!(
                "the disk cannot be served: {}",
                String::from_utf8_lossy(error)
            ))),
        }
    }

    /// The file that is the disk.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.at.join(DISK)
    }

    /// Attaches a loop device to the disk.
    ///
    /// # Errors
    /// No device is free, or loop devices are missing or not allowed.
    pub fn attach(&self, access: Access) -> Result<Loop, CrashError> {
        Loop::attach(&self.disk(), access).map_err(io_error(NO_LOOP))
    }

    /// Sends a command to the disk.
    ///
    /// # Errors
    /// The disk refused it.
    pub fn command(&self, words: &str) -> io::Result<()> {
        let path = self.at.join(CONTROL);
        OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(words.as_bytes())
    }

    /// The disk's status.
    ///
    /// # Errors
    /// The server has ended.
    pub fn status(&self) -> io::Result<String> {
        fs::read_to_string(self.at.join(CONTROL))
    }

    /// Unmounts the disk, which nobody may use any more.
    ///
    /// # Errors
    /// It is in use.
    pub fn end(mut self) -> io::Result<()> {
        unmount(&self.at)?;
        self.child.wait();
        fs::remove_dir(&self.at)
    }
}

fn send(to: &OwnedFd, words: &str) {
    // The reader is our parent; if it is gone nobody needs to know.
    let _ = rustix::io::write(to, words.as_bytes());
}
