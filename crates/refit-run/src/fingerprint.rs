//! The machine, as far as it can explain a difference between two runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

/// What does not change during a comparison in `directory`.
pub fn fixed(directory: &Path) -> BTreeMap<String, String> {
    let uname = rustix::system::uname();
    let cpu = read("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| {
        line.strip_prefix("model name")?
            .split_once(": ")
            .map(|(_, name)| name)
    });
    let memory = read("/proc/meminfo").unwrap_or_default();
    let total = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:").map(str::trim));
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    [
        (
            "machine",
            Some(uname.nodename().to_string_lossy().into_owned()),
        ),
        (
            "kernel",
            Some(uname.release().to_string_lossy().into_owned()),
        ),
        ("cpu", model.map(str::to_owned)),
        ("cores", Some(cores.to_string())),
        ("memory", total.map(str::to_owned)),
        ("filesystem", mount_of(directory)),
        ("disk", disk_of(directory)),
        ("directory", Some(directory.display().to_string())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// What may change during a comparison, and can explain a difference.
pub fn changing() -> BTreeMap<String, String> {
    let thp = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let marked = |text: String| {
        let (_, rest) = text.split_once('[')?;
        rest.split_once(']').map(|(mode, _)| mode.to_owned())
    };
    let load = read("/proc/loadavg");
    [
        ("thp", thp.and_then(marked)),
        (
            "governor",
            read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ),
        (
            "load",
            load.and_then(|text| text.split(' ').next().map(str::to_owned)),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// Type and options of the mount that a directory lies on (proc(5), mountinfo).
pub fn mount_of(directory: &Path) -> Option<String> {
    mount(directory).map(|mount| mount.options)
}

/// The mount that a directory lies on.
struct Mount {
    /// `MAJOR:MINOR` of its device.
    device: String,
    /// Of its file system.
    kind: String,
    options: String,
}

fn mount(directory: &Path) -> Option<Mount> {
    let directory = directory.canonicalize().ok()?;
    let text = read("/proc/self/mountinfo")?;
    text.lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let left: Vec<&str> = left.split(' ').collect();
            let right: Vec<&str> = right.split(' ').collect();
            let point = Path::new(left.get(4)?);
            directory.starts_with(point).then(|| {
                let options = format!("{} ({},{})", right[0], left[5], right.get(2).unwrap_or(&""));
                let mount = Mount {
                    device: left[2].to_owned(),
                    kind: right[0].to_owned(),
                    options,
                };
                (point.as_os_str().len(), mount)
            })
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, mount)| mount)
}

/// The disk that a directory lies on: its model, or else its name; and whether it rotates (sysfs,
/// Documentation/ABI/stable/sysfs-block). Without a block device the type of the file system: `tmpfs`, `nfs4`.
fn disk_of(directory: &Path) -> Option<String> {
    let mount = mount(directory)?;
    let device = format!("/sys/dev/block/{}", mount.device);
    let Ok(device) = fs::canonicalize(device) else {
        return Some(mount.kind);
    };
    // A partition lies in its disk's directory.
    let disk = if device.join("partition").exists() {
        device.parent()?
    } else {
        &device
    };
    let of = |file: &str| read(disk.join(file).to_str()?);
    let name = disk.file_name()?.to_string_lossy().into_owned();
    let rotates = of("queue/rotational")? != "0";
    let kind = kind_of_disk(&name, rotates);
    Some(format!("{} ({kind})", of("device/model").unwrap_or(name)))
}

/// A virtual disk rotates where nobody told its driver otherwise, which says nothing of what it lies on.
fn kind_of_disk(name: &str, rotates: bool) -> &'static str {
    let is_virtual = ["vd", "xvd", "loop", "zram", "nbd", "rbd"]
        .iter()
        .any(|begin| name.starts_with(begin));
    match (is_virtual, rotates) {
        (true, _) => "virtual",
        (false, true) => "rotating",
        (false, false) => "solid state",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_disk_is_not_said_to_rotate() {
        for (name, rotates, kind) in [
            ("vda", true, "virtual"),
            ("xvdb", false, "virtual"),
            ("sda", true, "rotating"),
            ("nvme0n1", false, "solid state"),
        ] {
            assert_eq!(kind_of_disk(name, rotates), kind, "{name}");
        }
    }
}
