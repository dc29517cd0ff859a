//! The block device beneath a directory, as sysfs describes it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Its name, model and kind of cache: `sda1 (Samsung SSD 860; write back)`. `None` where a file system has no single
/// device (overlayfs, btrfs) or none at all.
pub(super) fn beneath(sys: &Path, directory: &Path) -> Option<String> {
    let device = fs::metadata(directory).ok()?.dev();
    named(sys, rustix::fs::major(device), rustix::fs::minor(device))
}

fn named(sys: &Path, major: u32, minor: u32) -> Option<String> {
    let link = sys.join("dev/block").join(format!("{major}:{minor}"));
    let own = link.canonicalize().ok()?;
    let name = own.file_name()?.to_str()?.to_owned();
    // A partition's directory lies in that of its disk.
    let disk = if own.join("partition").exists() {
        own.parent()?
    } else {
        &own
    };
    let facts: Vec<String> = ["device/model", "queue/write_cache"]
        .iter()
        .filter_map(|file| fs::read_to_string(disk.join(file)).ok())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .collect();
    Some(if facts.is_empty() {
        name
    } else {
        format!("{name} ({})", facts.join("; "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_the_model_and_the_cache_of_its_disk() {
        let sys = tempfile::tempdir().unwrap();
        let disk = sys.path().join("devices/sda");
        for dir in ["sda1", "device", "queue"] {
            fs::create_dir_all(disk.join(dir)).unwrap();
        }
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        fs::write(disk.join("device/model"), "A disk  \n").unwrap();
        fs::write(disk.join("queue/write_cache"), "write back\n").unwrap();
        let links = sys.path().join("dev/block");
        fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink(disk.join("sda1"), links.join("8:1")).unwrap();
        let found = named(sys.path(), 8, 1);
        assert_eq!(found.as_deref(), Some("sda1 (A disk; write back)"));
        assert_eq!(named(sys.path(), 8, 2), None);
    }
}
