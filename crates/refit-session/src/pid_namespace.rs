//! Which pid namespace a process is in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// PROC_PID_INIT_INO, include/linux/proc_ns.h
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The pid namespace of a process, by its number or `self`.
pub fn namespace_of(process: &str) -> Option<u64> {
    let about = fs::metadata(format!("/proc/{process}/ns/pid")).ok()?;
    Some(about.ino())
}

/// That of this process, which never changes: a process can only choose one for its
/// children (setns(2)).
pub fn own_namespace() -> Option<u64> {
    static NUMBER: OnceLock<Option<u64>> = OnceLock::new();
    *NUMBER.get_or_init(|| namespace_of("self"))
}

/// Whether this is the first pid namespace: from any other one, processes outside are not seen.
pub fn sees_all_processes() -> bool {
    own_namespace() == Some(FIRST_NAMESPACE)
}

/// Whether a pid namespace has a process of this user. The namespaces of other users'
/// processes cannot be read, and those do not use this user's sessions.
pub fn lives(namespace: u64) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|pid| namespace_of(&pid) == Some(namespace))
}
