//! What the processes of a tree have used: processor time, faults, writes.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::stat::Stat;
use crate::tree::at;

/// Times in /proc/PID/stat are in ticks of USER_HZ, which is 100 on x86-64 and
/// arm64 whatever the kernel's own tick (include/asm-generic/param.h).
const TICK_NS: u64 = 10_000_000;
/// How often a tree is read again that loses processes while it is read.
const ATTEMPTS: usize = 5;

/// What processes have used since they started, with the children that they
/// waited for. Children that nobody in the tree waited for (orphans, and all of
/// a parent that ignores SIGCHLD) are lost with their end, see wait(2).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct TreeUsage {
    /// Processor time in the programs. The kernel rounds that of each process down to 10 ms.
    pub user_ns: u64,
    /// Processor time in the kernel, likewise.
    pub system_ns: u64,
    /// Bytes that were to be written to a disk: counted when a page becomes
    /// dirty, and when a direct write is sent. What is deleted before it was
    /// written is in it, what goes to tmpfs is not (proc.rst, /proc/PID/io).
    /// `None` where a process's could not be read, or none was there.
    pub written_bytes: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
}

impl TreeUsage {
    /// The difference to `before`. Too small where a process ended in
    /// between that nobody waited for.
    #[must_use]
    pub fn since(&self, before: &TreeUsage) -> TreeUsage {
        let written = self.written_bytes.zip(before.written_bytes);
        TreeUsage {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            written_bytes: written.map(|(now, then)| now.saturating_sub(then)),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
        }
    }

    fn add(&mut self, stat: &Stat, written: Option<u64>) {
        let add = |sum: &mut u64, numbers: [u64; 2], unit: u64| {
            for number in numbers {
                *sum = sum.saturating_add(number.saturating_mul(unit));
            }
        };
        add(&mut self.user_ns, [stat.user, stat.children_user], TICK_NS);
        add(
            &mut self.system_ns,
            [stat.system, stat.children_system],
            TICK_NS,
        );
        add(
            &mut self.minor_faults,
            [stat.minor_faults, stat.children_minor_faults],
            1,
        );
        add(
            &mut self.major_faults,
            [stat.major_faults, stat.children_major_faults],
            1,
        );
        let both = self.written_bytes.zip(written);
        self.written_bytes = both.map(|(sum, more)| sum.saturating_add(more));
    }
}

/// Sum over `pids`. Processes that wait to be reaped are in it; those that
/// were reaped are in the values of their parents.
#[must_use]
pub fn tree_usage(proc: &Path, pids: &[u32]) -> TreeUsage {
    let mut usage = TreeUsage::default();
    for _ in 0..ATTEMPTS {
        let read;
        (usage, read) = read_once(proc, pids);
        // A process that is reaped meanwhile may be counted twice, with its own and with
        // its parent's values, or not at all.
        if read.iter().all(|pid| at(proc, *pid).exists()) {
            break;
        }
    }
    usage
}

/// The sum, and whose it is.
fn read_once(proc: &Path, pids: &[u32]) -> (TreeUsage, Vec<u32>) {
    let mut sum = TreeUsage {
        written_bytes: Some(0),
        ..TreeUsage::default()
    };
    let mut read = Vec::new();
    for pid in pids {
        let directory = at(proc, *pid);
        if let Some(stat) = Stat::read(&directory) {
            sum.add(&stat, written_bytes(&directory));
            read.push(*pid);
        }
    }
    if read.is_empty() {
        sum.written_bytes = None;
    }
    (sum, read)
}

/// All threads, the ended ones included, and children that were waited for: the
/// kernel adds a child's to its parent's when it is waited for (kernel/exit.c,
/// wait_task_zombie; fs/proc/base.c, do_io_accounting). It needs the right to
/// trace the process.
fn written_bytes(directory: &Path) -> Option<u64> {
    let text = fs::read_to_string(directory.join("io")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    const IO: &str =
        "rchar: 9\nwchar: 9\nread_bytes: 9\nwrite_bytes: 512\ncancelled_write_bytes: 9\n";

    #[test]
    fn processes_and_whom_they_waited_for_are_summed() {
        let proc = FakeProc::new();
        for pid in [3, 4] {
            proc.process(pid, "a", 'S', 1);
            proc.write(&format!("{pid}/io"), IO);
        }
        let both = tree_usage(proc.path(), &[3, 4, 5]);
        let expected = TreeUsage {
            user_ns: 2 * (5 + 7) * TICK_NS,
            system_ns: 2 * (6 + 8) * TICK_NS,
            written_bytes: Some(1024),
            minor_faults: 2 * (1 + 2),
            major_faults: 2 * (3 + 4),
        };
        assert_eq!(both, expected);
        let one = tree_usage(proc.path(), &[3]);
        assert_eq!(both.since(&one), one);
        assert_eq!(
            one.since(&both),
            TreeUsage {
                written_bytes: Some(0),
                ..TreeUsage::default()
            }
        );
    }

    #[test]
    fn writes_that_cannot_be_read_are_unknown_and_not_0() {
        let proc = FakeProc::new();
        for (pid, io) in [(3, IO), (4, "write_bytes: x"), (5, "")] {
            proc.process(pid, "a", 'S', 1);
            proc.write(&format!("{pid}/io"), io);
        }
        proc.process(6, "no io", 'S', 1);
        let written = |pids: &[u32]| tree_usage(proc.path(), pids).written_bytes;
        assert_eq!(written(&[3]), Some(512));
        for other in [4, 5, 6] {
            assert_eq!(written(&[3, other]), None);
            assert_eq!(written(&[other, 3]), None);
        }
        assert_eq!((written(&[]), written(&[99])), (None, None));
        let known = tree_usage(proc.path(), &[3]);
        let unknown = tree_usage(proc.path(), &[4]);
        assert_eq!(known.since(&unknown).written_bytes, None);
        assert_eq!(unknown.since(&known).written_bytes, None);
    }

    #[test]
    fn numbers_beyond_every_limit_do_not_overflow() {
        let proc = FakeProc::new();
        let most = u64::MAX;
        let stat =
            format!("3 (a) S 1 0 0 0 -1 0 {most} {most} 0 0 {most} {most} 0 0 20 0 1 0 9 4096 7");
        proc.write("3/stat", stat);
        let usage = tree_usage(proc.path(), &[3, 3]);
        assert_eq!((usage.user_ns, usage.minor_faults), (most, most));
    }

    #[test]
    fn what_a_real_child_used_stays_when_it_was_waited_for() {
        // On a disk: /tmp may be a tmpfs, whose writes are not counted.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let burn = "read x; sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done;
            dd if=/dev/zero of=file bs=1M count=2 2>/dev/null'; echo; read x";
        let mut shell = Command::new("sh");
        shell.args(["-c", burn]).current_dir(dir.path());
        let mut shell = shell
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let before = tree_usage(Path::new("/proc"), &[shell.id()]);
        shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let used = tree_usage(Path::new("/proc"), &[shell.id()]).since(&before);
        assert!(used.user_ns >= 2 * TICK_NS, "{used:?}");
        assert!(used.minor_faults > 100, "{used:?}");
        assert!(used.written_bytes.unwrap() >= 2 << 20, "{used:?}");
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
