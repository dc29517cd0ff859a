//! The file system that the program writes to.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde::{Deserialize, Serialize};

use crate::error::{CrashError, io_error};

/// Somebody may still look at a mount for a moment.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Debian's default.
    Ext4,
    /// Delayed allocation and a log of metadata.
    Xfs,
    /// Copy on write.
    Btrfs,
}

impl Kind {
    /// As the kernel and mkfs name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// How many states of one record may be mounted at once: btrfs takes two
    /// devices with the same identity for parts of one file system (before Linux
    /// 6.7, fs/btrfs/volumes.c).
    #[must_use]
    pub fn at_once(self) -> usize {
        match self {
            Kind::Ext4 | Kind::Xfs => usize::MAX,
            Kind::Btrfs => 1,
        }
    }

    /// The smallest disk that its mkfs takes.
    #[must_use]
    pub fn smallest(self) -> u64 {
        match self {
            Kind::Ext4 => 8 << 20,
            // mkfs.xfs 6: "Filesystem must be larger than 300MB."
            Kind::Xfs => 320 << 20,
            Kind::Btrfs => 128 << 20,
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        [Kind::Ext4, Kind::Xfs, Kind::Btrfs]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("{text:?} is none of ext4, xfs, btrfs"))
    }
}

/// A file system with its mount options.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Filesystem {
    /// Which.
    pub kind: Kind,
    /// As behind `mount -o`, for the file system itself.
    pub options: String,
}

impl Filesystem {
    /// Makes a new one on the device.
    ///
    /// # Errors
    /// mkfs is missing, or says why not.
    pub fn make(&self, device: &Path) -> Result<(), CrashError> {
        let name = self.kind.name();
        let quiet: &[&str] = match self.kind {
            // Nothing is left to a kernel thread that would write during the run.
            Kind::Ext4 => &[
                "-q",
                "-F",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
            ],
            Kind::Xfs => &["-q", "-f", "-K"],
            Kind::Btrfs => &["-q", "-f", "-K"],
        };
        let output = Command::new(format!("mkfs.{name}"))
            .args(quiet)
            .arg(device)
            .stdin(Stdio::null())
            .output()
            .map_err(io_error(format!("cannot run mkfs.{name}")))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(CrashError::Refused(format!(
            "mkfs.{name} failed: {}",
            said.trim()
        )))
    }

    /// The version of the mkfs that makes it, in its own words: `mke2fs 1.47.0
    /// (5-Feb-2023)`. Empty when it says nothing.
    #[must_use]
    pub fn tool_version(&self) -> String {
        let output = Command::new(format!("mkfs.{}", self.kind.name()))
            .arg("-V")
            .stdin(Stdio::null())
            .output();
        let Ok(output) = output else {
            return String::new();
        };
        // mke2fs says it on stderr.
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        said.lines().next().unwrap_or("").trim().to_owned()
    }

    /// Mounts it; the kernel replays its journal where that is needed.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn mount(&self, device: &Path, at: &Path) -> io::Result<()> {
        let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOATIME;
        let mut options: Vec<&str> = Vec::new();
        if self.kind == Kind::Xfs {
            // States of one record have one UUID, and several are mounted at once.
            options.push("nouuid");
        }
        if !self.options.is_empty() {
            options.push(&self.options);
        }
        let options = std::ffi::CString::new(options.join(","))?;
        mount(device, at, self.kind.name(), flags, options.as_c_str())?;
        Ok(())
    }
}

/// Whether nothing more can be written there.
#[must_use]
pub fn is_full(at: &Path) -> bool {
    rustix::fs::statvfs(at).is_ok_and(|about| about.f_bavail == 0)
}

/// Unmounts, with patience for those who are just leaving.
///
/// # Errors
/// It is still busy, or not mounted.
pub fn unmount_patiently(at: &Path) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match unmount(at, UnmountFlags::empty()) {
            Err(Errno::BUSY) if began.elapsed() < PATIENCE => sleep(PAUSE),
            result => return Ok(result?),
        }
    }
}
