//! Events of the kernel, as perf_event_open(2) gives them: on which processors, and why there are none.

pub mod record;
pub mod shortage;
pub mod sys;

use std::fs;
use std::io;

use shortage::shortage;

/// Processors that run. A chroot or container may have no /sys, but then has /proc.
///
/// # Errors
/// Neither says it.
pub fn processors() -> Result<Vec<i32>, String> {
    let found = match fs::read_to_string("/sys/devices/system/cpu/online") {
        Ok(online) => listed(&online),
        Err(error) => match shortage(&error) {
            Some(reason) => return Err(reason),
            None => counted(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        },
    };
    if found.is_empty() {
        return Err("neither /sys nor /proc/stat says which processors run".to_owned());
    }
    Ok(found)
}

/// As proc(5) has it: a line `cpu0 …` for each processor that runs.
fn counted(stat: &str) -> Vec<i32> {
    let words = stat.lines().filter_map(|line| line.split(' ').next());
    words
        .filter_map(|word| word.strip_prefix("cpu")?.parse().ok())
        .collect()
}

/// Written as `0-3,8`.
fn listed(online: &str) -> Vec<i32> {
    let ranges = online.trim().split(',');
    let numbers = ranges.filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    numbers.flatten().collect()
}

/// Why there are no events, for people.
pub fn refused(error: &io::Error) -> String {
    if let Some(reason) = shortage(error) {
        return reason;
    }
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "perf events are not permitted here".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no perf events".to_owned(),
        _ => format!("no perf events: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_read_from_ranges() {
        assert_eq!(listed("0\n"), [0]);
        assert_eq!(listed("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(listed(""), [0; 0]);
    }

    #[test]
    fn proc_names_the_same_processors() {
        assert_eq!(counted("cpu  1 2\ncpu0 1 2\ncpu3 4\nintr 5\n"), [0, 3]);
        let [online, stat] = ["/sys/devices/system/cpu/online", "/proc/stat"]
            .map(|path| fs::read_to_string(path).unwrap_or_default());
        if !online.is_empty() {
            assert_eq!(counted(&stat), listed(&online));
        }
    }
}
