//! Which processes belong to a test, and getting rid of those that outlived it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::sys;

/// Waits up to `grace` for what a test started to end; then kills the rest, and returns one line for each. What
/// a test started is: a process that works in `dir`, that has `dir` in its environment, or that descends from
/// `root` (while `root`, the test itself, is not yet reaped).
pub fn kill_leftovers(root: u32, dir: &Path, grace: Duration) -> Vec<String> {
    let mut deadline = Deadline::after(grace);
    let mut left = leftovers(root, dir);
    while !left.is_empty() && !grace.is_zero() && !deadline.is_over() {
        std::thread::sleep(Duration::from_millis(10));
        left = leftovers(root, dir);
    }
    left.iter()
        .map(|process| {
            let line = format!("{} {}", process.pid, process.command());
            sys::kill_hard(i32::try_from(process.pid).expect("process ids are ints"));
            line
        })
        .collect()
}

fn leftovers(root: u32, dir: &Path) -> Vec<Process> {
    let mut others = snapshot();
    let mut ours = vec![root];
    let mut left: Vec<Process> = Vec::new();
    // A child may be listed before its parent: repeat until nothing is added.
    loop {
        let (found, rest): (Vec<_>, Vec<_>) = others
            .into_iter()
            .filter(|process| process.pid != root)
            .partition(|process| ours.contains(&process.parent) || process.works_in(dir));
        if found.is_empty() {
            return left;
        }
        ours.extend(found.iter().map(|process| process.pid));
        left.extend(found);
        others = rest;
    }
}

/// The children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    let all = snapshot().into_iter();
    let children = all.filter(|process| process.parent == parent);
    children.map(|process| process.pid).collect()
}

/// The processor time of a process that has ended and was not reaped, and of all that it reaped, in hundredths of a second
/// (proc_pid_stat(5): utime to cstime, in clock ticks, of which a second has 100 wherever these tests run).
pub fn processor_time(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks: Option<u64> = fields
        .skip(11)
        .take(4)
        .map(|field| field.parse::<u64>().ok())
        .sum();
    Some(Duration::from_millis(ticks? * 10))
}

/// A line of /proc/PID/status, without its name; `None` when there is no such process.
pub fn status_line(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    lines.find_map(|line| {
        Some(
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .to_owned(),
        )
    })
}

struct Process {
    pid: u32,
    parent: u32,
}

impl Process {
    fn works_in(&self, dir: &Path) -> bool {
        let proc = format!("/proc/{}", self.pid);
        if fs::read_link(format!("{proc}/cwd")).is_ok_and(|cwd| cwd.starts_with(dir)) {
            return true;
        }
        let marked = [b"REFIT_TEST_ENV_DIR=", dir.as_os_str().as_bytes()].concat();
        fs::read(format!("{proc}/environ")).is_ok_and(|environment| {
            environment
                .split(|&b| b == 0)
                .any(|variable| variable == marked)
        })
    }

    fn command(&self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .replace('\0', " ")
            .trim_end()
            .to_owned()
    }
}

/// All living processes; zombies are left out, since nobody can do anything about them here.
fn snapshot() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The command name is in parentheses and may hold anything, parentheses included.
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            (state != "Z").then_some(Process { pid, parent })
        })
        .collect()
}
