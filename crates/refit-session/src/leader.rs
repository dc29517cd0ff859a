//! The first process of a session, as the session's lock file notes it.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::pid_namespace::{lives, own_namespace, sees_all_processes};

/// PROC_TIME_INIT_INO, include/linux/proc_ns.h
const FIRST_TIME_NAMESPACE: u64 = 0xEFFF_FFFA;

/// `PID NAMESPACE START`: a pid means something in its namespace only, and another process may have it later.
#[derive(Debug, PartialEq)]
pub struct Leader {
    pid: Pid,
    namespace: u64,
    start: Option<u64>,
}

impl Leader {
    /// A process of this namespace; `None` where /proc does not tell its namespace.
    pub fn of(pid: u32) -> Option<Leader> {
        let pid = Pid::from_raw(pid.try_into().ok()?)?;
        Some(Leader {
            pid,
            namespace: own_namespace()?,
            start: start_of(pid),
        })
    }

    /// What a lock file notes.
    pub fn parse(noted: &str) -> Option<Leader> {
        let mut words = noted.lines().next()?.split(' ');
        Some(Leader {
            pid: Pid::from_raw(words.next()?.parse().ok()?)?,
            namespace: words.next()?.parse().ok()?,
            start: words.next().and_then(|start| start.parse().ok()),
        })
    }

    /// Whether it has ended, as far as this process can see.
    pub fn has_ended(&self) -> bool {
        if own_namespace() != Some(self.namespace) {
            return sees_all_processes() && !lives(self.namespace);
        }
        let is_another = || {
            let both = self.start.zip(start_of(self.pid));
            both.is_some_and(|(noted, now)| noted != now)
        };
        test_kill_process(self.pid) == Err(Errno::SRCH)
            || is_another()
            || waits_to_be_reaped(self.pid)
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid.as_raw_nonzero(), self.namespace)?;
        match self.start {
            Some(start) => write!(f, " {start}"),
            None => Ok(()),
        }
    }
}

/// When a process started, in clock ticks since the boot (proc_pid_stat(5)). Another time namespace has a boot of
/// its own, so that its numbers are not comparable: `None`.
fn start_of(pid: Pid) -> Option<u64> {
    let namespace = fs::metadata("/proc/self/ns/time");
    if namespace.is_ok_and(|about| about.ino() != FIRST_TIME_NAMESPACE) {
        return None;
    }
    fields_of(pid)?.split_whitespace().nth(19)?.parse().ok()
}

/// All of it has ended, and nobody has asked how: an orphan may wait for long, or for ever where the first process of a
/// container reaps nobody. The first thread of a process may end before the others (kernel: delay_group_leader).
fn waits_to_be_reaped(pid: Pid) -> bool {
    let Some(fields) = fields_of(pid) else {
        return false;
    };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let threads = fields.get(17).and_then(|threads| threads.parse().ok());
    matches!(fields.first(), Some(&("Z" | "X"))) && threads.is_some_and(|threads: u64| threads <= 1)
}

/// The fields of /proc/PID/stat (proc_pid_stat(5)) from the third one on, which is the state.
fn fields_of(pid: Pid) -> Option<String> {
    let mut stat = File::open(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // One call reads all of it: a name of 16 bytes, and 51 numbers.
    let mut text = [0; 2048];
    let length = stat.read(&mut text).ok()?;
    // After the name, which may hold anything.
    let name_end = text[..length].iter().rposition(|byte| *byte == b')')?;
    Some(str::from_utf8(&text[name_end + 1..length]).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_that_another_process_has_by_now_is_not_the_leader() {
        let own = Leader::of(std::process::id()).unwrap();
        assert!(own.start.is_some_and(|start| start > 0));
        assert_eq!(
            Leader::parse(&format!("{own}\n")),
            Leader::of(std::process::id())
        );
        assert!(!own.has_ended());
        let (pid, namespace) = (own.pid.as_raw_nonzero(), own.namespace);
        let other = Leader::parse(&format!("{pid} {namespace} 1\n")).unwrap();
        assert!(other.has_ended());
        // As long as nothing tells them apart, it lives.
        let unknown = Leader::parse(&format!("{pid} {namespace}\n")).unwrap();
        assert!(!unknown.has_ended());
        for damaged in ["", "\n", "x 1 1", "1", "1 x", "0 1 1", "-"] {
            assert_eq!(Leader::parse(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn the_start_is_told_where_a_name_has_spaces_and_parentheses() {
        let mut child = std::process::Command::new("sh")
            .args([
                "-c",
                "printf 'a) b (\\377 1 2' >/proc/$$/comm; echo; read x",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let before = Leader::of(child.id()).unwrap().start;
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let after = Leader::of(child.id()).unwrap();
        assert!(before.is_some() && before == after.start);
        assert!(!after.has_ended());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(after.has_ended());
    }

    #[test]
    fn one_that_nobody_reaps_has_ended() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let leader = Leader::of(child.id()).unwrap();
        assert!(!leader.has_ended());
        child.kill().unwrap();
        let state = || fields_of(leader.pid).unwrap().trim_start().starts_with('Z');
        while !state() {
            std::thread::yield_now();
        }
        assert!(leader.has_ended());
        child.wait().unwrap();
    }
}
