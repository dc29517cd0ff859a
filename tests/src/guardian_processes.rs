//! The processes of a guardian, found by what /proc shows of its children.

use std::fs;

use crate::guardian::{SESSION, stat_field};

/// Whether a process of this name has not ended.
pub fn is_alive(pid: u32, name: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let (start, rest) = stat.rsplit_once(") ").unwrap_or_default();
    start.split_once('(').is_some_and(|(_, own)| own == name) && !rest.starts_with('Z')
}

/// The living children of this name (proc(5), /proc/PID/task/TID/children).
fn children_named(parent: u32, name: &str) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let pids = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    pids.filter(|pid| is_alive(*pid, name)).collect()
}

/// A guardian's child of its name: in a session of its own, which an opener or reader that has no name yet is not.
pub fn standby(active: u32) -> Option<u32> {
    let children = children_named(active, "refit-guardian");
    let mut children = children.into_iter();
    children.find(|pid| stat_field(*pid, SESSION) == Some(*pid))
}

/// One that may be there at the next look.
pub fn short_lived(parent: u32, name: &str) -> Option<u32> {
    (0..100).find_map(|_| children_named(parent, name).pop())
}
