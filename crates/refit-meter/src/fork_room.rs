//! Whether a process can be forked without harm: what the copy may take at most is there.

use std::fs;
use std::path::{Path, PathBuf};

use refit_session::grouped;

use crate::memory::memory_available;
use crate::process_memory::{MemoryReading, kib, process_memory};
use crate::stat::threads;
use crate::tree::at;

/// Processes that the user, or the cgroup, must be able to start besides.
const SPARE_PROCESSES: u64 = 32;
/// Of the memory that is left, a copy may take one byte in so many.
const SHARE: u64 = 2;

/// Memory without a file that a process has resident, in bytes, by the kernel's own sum; `None` when it has ended, or
/// may not be read.
#[must_use]
pub fn anonymous_bytes(proc: &Path, pid: u32) -> Option<u64> {
    kib(
        &fs::read_to_string(at(proc, pid).join("smaps_rollup")).ok()?,
        "Anonymous",
    )
}

/// Why a process should not be forked; `None`: nothing speaks against it. What cannot be read speaks against it.
#[must_use]
pub fn fork_obstacle(proc: &Path, pid: u32, may_have_threads: bool) -> Option<String> {
    match threads(proc, pid) {
        None => return Some("it has ended".to_owned()),
        Some(threads) if threads == 1 || may_have_threads => {}
        Some(threads) => return Some(format!("it has {} threads", grouped(threads))),
    }
    let overcommit = fs::read_to_string(proc.join("sys/vm/overcommit_memory"));
    if overcommit.is_ok_and(|mode| mode.trim() == "2") {
        return Some("vm.overcommit_memory is 2: a copy counts in full".to_owned());
    }
    let MemoryReading::Read(memory) = process_memory(proc, pid) else {
        return Some("its memory cannot be read".to_owned());
    };
    // Each page that it writes to meanwhile exists twice.
    let needed = memory.uss_bytes.saturating_mul(SHARE);
    if memory_available(proc).is_none_or(|left| left < needed) {
        return Some("the machine has too little memory left for a copy".to_owned());
    }
    let limits = cgroup_directories(proc, pid);
    let lacks = |most: &str, now: &str, needed: u64| {
        let mut left = limits
            .iter()
            .filter_map(|at| Some(number(at, most)?.saturating_sub(number(at, now)?)));
        left.any(|left| left < needed)
    };
    if lacks("memory.max", "memory.current", needed)
        || lacks("memory.limit_in_bytes", "memory.usage_in_bytes", needed)
    {
        return Some("its cgroup has too little memory left for a copy".to_owned());
    }
    if lacks("pids.max", "pids.current", SPARE_PROCESSES) {
        return Some("its cgroup has no processes left".to_owned());
    }
    let is_near = is_near_limit(proc, pid).unwrap_or(true);
    is_near.then(|| "its user may have no processes left (RLIMIT_NPROC)".to_owned())
}

/// Its cgroups, each up to the root of its hierarchy, as far as it is mounted (proc_pid_mountinfo(5)).
fn cgroup_directories(proc: &Path, pid: u32) -> Vec<PathBuf> {
    let own = fs::read_to_string(at(proc, pid).join("cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string(proc.join("self/mountinfo")).unwrap_or_default();
    let mut found = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, _, root, place, .., kind, _, options] = fields[..] else {
            continue;
        };
        let is_of = |names: &str| match kind {
            "cgroup" => options
                .split(',')
                .any(|option| names.split(',').any(|name| name == option)),
            _ => kind == "cgroup2" && names.is_empty(),
        };
        let path = own.lines().find_map(|line| {
            let (names, path) = line.split_once(':')?.1.split_once(':')?;
            is_of(names).then_some(path)
        });
        if let Some(path) = path {
            let inside = path
                .strip_prefix(root)
                .unwrap_or(path)
                .trim_start_matches('/');
            let directory = Path::new(place).join(inside);
            let up = directory.ancestors().take_while(|at| at.starts_with(place));
            found.extend(up.map(Path::to_owned));
        }
    }
    found
}

/// `None` where the file is missing, or sets no limit (`max`).
fn number(directory: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(directory.join(file))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Whether few more processes might reach RLIMIT_NPROC (setrlimit(2)). The user has no more than the machine.
fn is_near_limit(proc: &Path, pid: u32) -> Option<bool> {
    let limits = fs::read_to_string(at(proc, pid).join("limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max processes"))?;
    let Ok(most) = line.split_whitespace().next()?.parse::<u64>() else {
        return Some(false); // unlimited
    };
    let load = fs::read_to_string(proc.join("loadavg")).ok()?;
    let all: u64 = load.split([' ', '/']).nth(4)?.parse().ok()?;
    Some(all + SPARE_PROCESSES > most)
}
