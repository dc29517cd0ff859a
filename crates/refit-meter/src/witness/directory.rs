//! The path of a directory that only its inode is known of.

use std::fs::{self, File};
use std::path::Path;

use super::sys;

/// Major and minor number of the kernel's own `dev_t` (include/linux/kdev_t.h).
pub fn numbers(device: u32) -> [u32; 2] {
    [device >> 20, device & 0xf_ffff]
}

/// Where `inode` is, as refit sees it, if it is a directory that still exists.
pub fn path(device: u32, inode: u64) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mount_point(&mounts, numbers(device))?;
    let mount = File::open(mount).ok()?;
    let directory = sys::open_inode(&mount, u32::try_from(inode).ok()?).ok()?;
    let path = fs::read_link(sys::link_of(&directory)).ok()?;
    // One that is outside of what is mounted here has no path.
    let is_there = path.is_absolute() && Path::new(&path).is_dir();
    is_there.then(|| path.to_string_lossy().into_owned())
}

/// A mount of the whole filesystem, or of a part: the first that there is
/// (proc_pid_mountinfo(5)).
fn mount_point(mounts: &str, [major, minor]: [u32; 2]) -> Option<String> {
    let device = format!("{major}:{minor}");
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let is_it = fields.get(2) == Some(&device.as_str());
        is_it.then(|| unescaped(fields.get(4)?)).flatten()
    })
}

/// `\040` is a space (show_mountinfo in fs/proc_namespace.c).
fn unescaped(field: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        if first == b'\\' {
            let digits = std::str::from_utf8(more.get(..3)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 8).ok()?);
            rest = &more[3..];
        } else {
            bytes.push(first);
            rest = more;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_device_whatever_its_name() {
        let mounts = "21 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      30 21 7:3 / /mnt/a\\040b rw,nosuid shared:2 - xfs /dev/loop3 rw\n";
        assert_eq!(mount_point(mounts, [254, 0]).unwrap(), "/");
        assert_eq!(mount_point(mounts, [7, 3]).unwrap(), "/mnt/a b");
        assert_eq!(mount_point(mounts, [7, 4]), None);
        assert_eq!(unescaped("a\\0"), None);
    }
}
