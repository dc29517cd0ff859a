//! Which file systems have an fsync that succeeds, by their devices.
//!
//! Where a file system has no fsync of its own (proc, nsfs, tracefs …) the
//! kernel answers EINVAL (fs/sync.c), and real calls cost nothing. So only
//! those that are known to store files are intercepted; all others stay real.

use std::collections::HashMap;
use std::fs;

/// Without a block device of their own, and with an fsync.
const KNOWN: [&str; 24] = [
    "9p",
    "afs",
    "bcachefs",
    "btrfs",
    "ceph",
    "cifs",
    "ecryptfs",
    "fuse",
    "fuse.sshfs",
    "hugetlbfs",
    "jffs2",
    "nfs",
    "nfs4",
    "orangefs",
    "overlay",
    "pvfs2",
    "ramfs",
    "shiftfs",
    "smb3",
    "tmpfs",
    "ubifs",
    "vboxsf",
    "virtiofs",
    "zfs",
];

/// What is known about devices.
#[derive(Default)]
pub struct Filesystems(HashMap<u64, bool>);

impl Filesystems {
    /// Whether the file systems of this device sync files; `tid` is a thread
    /// that has one open.
    pub fn sync_files(&mut self, device: u64, tid: u32) -> bool {
        if libc::major(device) != 0 {
            return true;
        }
        *self.0.entry(device).or_insert_with(|| {
            // A process in a chroot sees fewer, one in a container others.
            ["self".to_owned(), tid.to_string()]
                .iter()
                .filter_map(|whose| fs::read_to_string(format!("/proc/{whose}/mountinfo")).ok())
                .find_map(|mounts| kind_of(&mounts, device))
                .is_some_and(|kind| KNOWN.contains(&&*kind) || kind.starts_with("fuse."))
        })
    }
}

/// The type of the file system on a device (proc_pid_mountinfo(5)).
fn kind_of(mounts: &str, device: u64) -> Option<String> {
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let mut mounts = mounts.lines();
    let mount = mounts.find(|mount| mount.split(' ').nth(2) == Some(&number))?;
    let (_, after) = mount.split_once(" - ")?;
    after.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_number_after_optional_fields() {
        let mounts = "22 28 0:5 / /proc rw shared:5 - proc proc rw\n\
                      30 28 0:26 / /a\\040b rw shared:2 master:1 - btrfs /dev/x rw\n";
        assert_eq!(kind_of(mounts, libc::makedev(0, 26)).unwrap(), "btrfs");
        assert_eq!(kind_of(mounts, libc::makedev(0, 2)), None);
    }

    #[test]
    fn files_in_memory_are_synced_and_those_of_proc_are_not() {
        use std::os::unix::fs::MetadataExt;
        let mut all = Filesystems::default();
        let mut asks = |path| {
            let device = fs::metadata(path).unwrap().dev();
            all.sync_files(device, std::process::id())
        };
        assert!(asks("/dev/shm"));
        assert!(!asks("/proc/self/status"));
    }
}
