//! Types of file systems by their devices.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use refit_session::printable;
use rustix::fs::statfs;

/// Types whose content no reboot outlives.
const VOLATILE: [&str; 12] = [
    "tmpfs",
    "ramfs",
    "devtmpfs",
    "proc",
    "sysfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "mqueue",
    "debugfs",
    "tracefs",
    "hugetlbfs",
];

/// statfs(2) of types whose devices /proc/self/mountinfo does not name: a subvolume of btrfs has one of its own.
const NUMBERS: [(i64, &str); 4] = [
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlay"),
    (0x6573_5546, "fuse"),
];

/// The types of this machine's file systems, as they are asked for.
#[derive(Debug, Default)]
pub struct FileSystems {
    known: HashMap<u64, Option<String>>,
}

impl FileSystems {
    /// Type of the device that this path lies on; `None` where it cannot be known.
    pub fn of(&mut self, device: u64, path: &str) -> Option<&str> {
        let known = self.known.entry(device);
        let known = known.or_insert_with(|| of_mounts(device).or_else(|| of_path(path)));
        known.as_deref()
    }

    /// Whether a reboot leaves nothing of it.
    pub fn is_volatile(&mut self, device: u64, path: &str) -> bool {
        self.of(device, path)
            .is_some_and(|name| VOLATILE.contains(&name))
    }
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw` (proc_pid_mountinfo(5)).
fn of_mounts(device: u64) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let wanted = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    mounts.lines().find_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        let is_wanted = mount.split(' ').nth(2) == Some(&wanted);
        is_wanted.then(|| printable(source.split(' ').next().unwrap_or_default()))
    })
}

fn of_path(path: &str) -> Option<String> {
    let path = Path::new(path);
    let facts = [Some(path), path.parent()].into_iter().flatten();
    let number = facts.filter_map(|path| statfs(path).ok()).next()?.f_type;
    let found = NUMBERS.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| (*name).to_owned())
}
