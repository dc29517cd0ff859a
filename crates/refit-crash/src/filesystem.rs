//! The file system that the program writes to.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{self, MountFlags, UnmountFlags};
use serde::{Deserialize, Serialize};

use crate::error::{CrashError, io_error};

/// A process may use a mount for a moment longer.
pub const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(10);
/// From this size on mke2fs makes a journal of 32 MiB or more (e2fsprogs lib/ext2fs/mkjournal.c:
/// ext2fs_default_journal_size). Each image is mounted by reading all of the journal that is not yet checkpointed, three
/// times (fs/jbd2/recovery.c), so it stays at the 16 MiB of a smaller disk.
const LARGE: u64 = 1 << 30;
/// Between two looks.
pub const PAUSE: Duration = Duration::from_millis(2);

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What its mkfs comes with, as the table of packages has it.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Kind::Ext4 => "e2fsprogs",
            Kind::Xfs => "xfsprogs",
            Kind::Btrfs => "btrfs-progs",
        }
    }

    /// As the kernel and mkfs name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    /// How many images of one record may be mounted at once. btrfs takes two
    /// devices with the same identity for parts of one file system (before Linux
    /// 6.7, fs/btrfs/volumes.c).
    #[must_use]
    pub fn at_once(self) -> usize {
        match self {
            Kind::Ext4 | Kind::Xfs => usize::MAX,
            Kind::Btrfs => 1,
        }
    }

    /// The smallest disk that its mkfs accepts.
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
            .ok_or_else(|| format!("unknown file system {text:?}; choose ext4, xfs or btrfs"))
    }
}

/// A file system with its mount options.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Filesystem {
    /// Its kind.
    pub kind: Kind,
    /// As after `mount -o`, for the file system itself.
    pub options: String,
}

impl Filesystem {
    /// Makes a new one on the device, of so many bytes.
    ///
    /// # Errors
    /// mkfs is missing, or failed.
    pub fn make(&self, device: &Path, bytes: u64) -> Result<(), CrashError> {
        let name = self.kind.name();
        let quiet: &[&str] = match self.kind {
            // Blocks as on a larger disk: below 512 MiB mke2fs makes them of 1 KiB (mke2fs.conf(5), fs type `small`), and
            // then a program's page of 4 KiB can lie in two blocks of the disk. No kernel thread initialises anything
            // during the run.
            Kind::Ext4 => &[
                "-q",
                "-F",
                "-b",
                "4096",
                "-E",
                "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
            ],
            Kind::Xfs => &["-q", "-f", "-K"],
            Kind::Btrfs => &["-q", "-f", "-K"],
        };
        let journal: &[&str] = match self.kind {
            Kind::Ext4 if bytes >= LARGE => &["-J", "size=16"],
            _ => &[],
        };
        let output = Command::new(format!("mkfs.{name}"))
            .args(quiet)
            .args(journal)
            .arg(device)
            .stdin(Stdio::null())
            .output()
            .map_err(io_error(format!("cannot run mkfs.{name}")))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(CrashError::Refused(format!(
            "mkfs.{name} failed: {}",
            errors.trim()
        )))
    }

    /// The version of the mkfs that makes it, as it prints it: `mke2fs 1.47.0
    /// (5-Feb-2023)`. Empty when it prints none.
    #[must_use]
    pub fn tool_version(&self) -> String {
        let output = Command::new(format!("mkfs.{}", self.kind.name()))
            .arg("-V")
            .stdin(Stdio::null())
            .output();
        let Ok(output) = output else {
            return String::new();
        };
        // mke2fs prints it on stderr.
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        text.lines().next().unwrap_or("").trim().to_owned()
    }

    /// Mounts it; the kernel replays its journal where that is needed. Device nodes
    /// and set-user-ID bits in it have no effect.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn mount(&self, device: &Path, at: &Path) -> io::Result<()> {
        self.mount_with(MountFlags::empty(), device, at)
    }

    /// As [`Filesystem::mount`], and nothing in it can be executed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn mount_noexec(&self, device: &Path, at: &Path) -> io::Result<()> {
        self.mount_with(MountFlags::NOEXEC, device, at)
    }

    /// The mount option that names another device, if one does: the kernel would
    /// read and write that one too (ext4(5), xfs(5), btrfs(5)).
    #[must_use]
    pub fn other_device(&self) -> Option<&str> {
        let names = ["journal_dev", "journal_path", "logdev", "rtdev", "device"];
        self.options.split(',').find(|option| {
            let name = option.split('=').next().unwrap_or(option);
            names.contains(&name)
        })
    }

    fn mount_with(&self, more: MountFlags, device: &Path, at: &Path) -> io::Result<()> {
        let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOATIME | more;
        let mut options: Vec<&str> = Vec::new();
        if self.kind == Kind::Xfs {
            // Images of one record have one UUID, and several are mounted at once.
            options.push("nouuid");
        }
        if !self.options.is_empty() {
            options.push(&self.options);
        }
        let options = std::ffi::CString::new(options.join(","))?;
        mount::mount(device, at, self.kind.name(), flags, options.as_c_str())?;
        Ok(())
    }
}

/// Whether no free block is left there.
#[must_use]
pub fn is_full(at: &Path) -> bool {
    rustix::fs::statvfs(at).is_ok_and(|about| about.f_bavail == 0)
}

/// Unmounts; waits for processes that are just ending.
///
/// # Errors
/// It stays in use, or is not mounted.
pub fn unmount(at: &Path) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match mount::unmount(at, UnmountFlags::empty()) {
            Err(Errno::BUSY) if began.elapsed() < UNMOUNT_TIMEOUT => sleep(PAUSE),
            result => return Ok(result?),
        }
    }
}
