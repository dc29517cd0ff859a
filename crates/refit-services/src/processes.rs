//! The processes of a unit, and what they have in effect.

use std::fs;
use std::path::{Path, PathBuf};

use crate::systemd::Unit;

/// What was read of a process.
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// What it executes, by its path; empty where that is not told.
    pub program: String,
    maps: String,
    status: String,
    environment: Vec<u8>,
}

impl Process {
    pub(crate) fn read(pid: u32) -> Option<Process> {
        let of = |name: &str| fs::read(format!("/proc/{pid}/{name}"));
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let program = program.to_string_lossy();
        Some(Process {
            pid,
            // As the kernel marks one that an upgrade replaced: proc(5).
            program: program
                .strip_suffix(" (deleted)")
                .unwrap_or(&program)
                .to_owned(),
            maps: String::from_utf8_lossy(&of("maps").ok()?).into_owned(),
            status: String::from_utf8_lossy(&of("status").ok()?).into_owned(),
            environment: of("environ").ok()?,
        })
    }

    /// One with these lines of /proc/PID/status, and one variable.
    #[cfg(test)]
    pub fn told(status: &str, variable: &str) -> Process {
        Process {
            pid: 1,
            program: String::new(),
            maps: String::new(),
            status: status.to_owned(),
            environment: variable.as_bytes().to_vec(),
        }
    }

    /// Whether code of this library is mapped. Where a unit forbids to execute it, a line
    /// without `x` stays although ld.so refused it.
    pub fn executes(&self, path: &str) -> bool {
        self.maps.lines().any(|line| {
            let mut words = line.split_ascii_whitespace();
            let is_code = words.nth(1).is_some_and(|right| right.contains('x'));
            is_code && line.ends_with(path)
        })
    }

    /// A line of /proc/PID/status, without its key; `None` where this kernel writes none.
    pub fn status(&self, key: &str) -> Option<&str> {
        let mut lines = self.status.lines();
        lines.find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
    }

    /// A variable that it was started with.
    pub fn variable(&self, name: &str) -> Option<String> {
        let all = self.environment.split(|byte| *byte == 0);
        let text = all.map(|entry| String::from_utf8_lossy(entry));
        let mut pairs = text.filter_map(|entry| {
            let (key, value) = entry.split_once('=')?;
            (key == name).then(|| value.to_owned())
        });
        pairs.next()
    }
}

/// The processes of a unit that run now: those of its cgroup, and of cgroups below it.
pub fn processes_of(unit: &Unit) -> Vec<Process> {
    let mut pids = Vec::new();
    if unit.cgroup.len() > 1 {
        // cgroup v2; v1 with a hierarchy of systemd's own; both.
        for mount in [
            "/sys/fs/cgroup",
            "/sys/fs/cgroup/systemd",
            "/sys/fs/cgroup/unified",
        ] {
            collect(&PathBuf::from(format!("{mount}{}", unit.cgroup)), &mut pids);
        }
    }
    pids.push(unit.main_pid);
    pids.retain(|pid| *pid != 0);
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().filter_map(Process::read).collect()
}

/// The processes of the machine that execute this file.
pub fn running(program: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let all = pids.filter(|pid| {
        let found = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let found = found.to_string_lossy();
        found.strip_suffix(" (deleted)").unwrap_or(&found) == program
    });
    all.filter_map(Process::read).collect()
}

fn collect(dir: &Path, pids: &mut Vec<u32>) {
    let listed = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    pids.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), pids);
        }
    }
}
