//! The processes of the machine: who descends from whom, names, the one at the top.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use refit_session::names::{GUARDIAN, OPENER, READER};
use refit_session::printable;

use crate::stat::Stat;

/// The directory of a process.
pub(crate) fn at(proc: &Path, pid: u32) -> std::path::PathBuf {
    proc.join(pid.to_string())
}

/// Whether a process is refit's own, and no part of any program: it has such a
/// name, and runs refit's own executable.
pub(crate) fn is_guardian(proc: &Path, pid: u32) -> bool {
    let exe = |whose: &Path| fs::read_link(whose.join("exe")).ok();
    process_name(proc, pid).is_some_and(|name| {
        [GUARDIAN, OPENER, READER].iter().any(|own| own.to_bytes() == name.as_bytes())
    })
        // One that has ended has no executable any more.
        && exe(&at(proc, pid)).is_none_or(|theirs| Some(theirs) == exe(Path::new("/proc/self")))
}

/// Processes below `proc` whose line of parents reaches `ancestor`, without
/// `ancestor` itself, in ascending order; those that wait to be reaped are among
/// them, and those that answer for refit's seccomp filters are not. One pass: who loses its parent meanwhile is found below whoever adopts
/// it (prctl(2), PR_SET_CHILD_SUBREAPER), or not at all.
#[must_use]
pub fn descendants(proc: &Path, ancestor: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir(proc).into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(pid) = pid
            && let Some(stat) = Stat::read(&entry.path())
        {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = BTreeSet::new();
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        // Parents that were read at different times may seem to form a ring.
        let new = children.remove(&parent).unwrap_or_default();
        next.extend(
            new.into_iter()
                .filter(|pid| *pid != ancestor && found.insert(*pid)),
        );
    }
    found
        .into_iter()
        .filter(|pid| !is_guardian(proc, *pid))
        .collect()
}

/// The main process of a service: `leader`, which was started, while it lives.
/// Where it has become a daemon: the process among `pids` whose parent is not
/// among them, the lowest of several.
#[must_use]
pub fn top_of(proc: &Path, pids: &[u32], leader: u32) -> Option<u32> {
    let living = |pid| Stat::read(&at(proc, pid)).filter(|stat| !stat.ended());
    if living(leader).is_some() {
        return Some(leader);
    }
    let parents: BTreeMap<u32, u32> = pids
        .iter()
        .filter_map(|pid| Some((*pid, living(*pid)?.parent)))
        .collect();
    let top = parents
        .iter()
        .find(|(_, parent)| !parents.contains_key(parent));
    top.map(|(pid, _)| *pid)
}

/// Whether a process has ended, and perhaps waits to be reaped: all of it, for its
/// other threads may go on when the first one has ended.
#[must_use]
pub fn has_ended(proc: &Path, pid: u32) -> bool {
    Stat::read(&at(proc, pid)).is_none_or(|stat| stat.ended())
}

/// The name of a process, for messages: at most 15 bytes, of its own choice
/// (proc_pid_comm(5)), and so [`printable`].
#[must_use]
pub fn process_name(proc: &Path, pid: u32) -> Option<String> {
    let bytes = fs::read(at(proc, pid).join("comm")).ok()?;
    let name = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    Some(printable(&String::from_utf8_lossy(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn descendants_follow_the_parents_line() {
        let proc = FakeProc::new();
        for (pid, parent) in [
            (1, 0),
            (10, 1),
            (11, 10),
            (12, 11),
            (13, 10),
            (20, 1),
            (9, 12),
        ] {
            proc.process(pid, ") S 10 (", 'S', parent);
        }
        proc.write("uptime", "1 1");
        proc.write("14/stat", "garbage");
        proc.write("15/comm", "no stat\n");
        assert_eq!(descendants(proc.path(), 10), [9, 11, 12, 13]);
        assert_eq!(descendants(proc.path(), 20), [0; 0]);
        assert_eq!(descendants(&proc.path().join("none"), 1), [0; 0]);
    }

    #[test]
    fn a_guardian_is_no_part_of_the_program() {
        let proc = FakeProc::new();
        for (pid, name) in [
            (11, "refit-guardian"),
            (12, "refit-guardian"),
            (13, "server"),
        ] {
            proc.process(pid, name, 'S', 10);
            proc.write(&format!("{pid}/comm"), format!("{name}\n"));
        }
        // Of its name alone, and of refit's executable as well.
        std::os::unix::fs::symlink("/bin/sh", proc.path().join("11/exe")).unwrap();
        let own = std::env::current_exe().unwrap();
        std::os::unix::fs::symlink(own, proc.path().join("12/exe")).unwrap();
        assert_eq!(descendants(proc.path(), 10), [11, 13]);
    }

    #[test]
    fn a_ring_of_parents_ends() {
        let proc = FakeProc::new();
        for (pid, parent) in [(1, 3), (2, 1), (3, 2), (4, 4)] {
            proc.process(pid, "x", 'S', parent);
        }
        assert_eq!(descendants(proc.path(), 1), [2, 3]);
        assert_eq!(descendants(proc.path(), 4), [0; 0]);
        assert_eq!(top_of(proc.path(), &[1, 2, 3], 50), None);
    }

    #[test]
    fn the_top_is_the_leader_while_it_lives_and_then_the_daemon() {
        let proc = FakeProc::new();
        for (pid, parent) in [(30, 1), (31, 40), (32, 30), (40, 1)] {
            proc.process(pid, "server", 'S', parent);
        }
        let pids = [32, 40, 31, 30];
        assert_eq!(top_of(proc.path(), &pids, 32), Some(32));
        assert_eq!(top_of(proc.path(), &pids, 5), Some(30));
        proc.process(5, "sh", 'Z', 1);
        assert_eq!(top_of(proc.path(), &pids, 5), Some(30));
        // An ended one is nobody's top, and its children have none among them.
        proc.process(30, "server", 'Z', 1);
        assert_eq!(top_of(proc.path(), &[30, 32], 5), Some(32));
        assert_eq!(top_of(proc.path(), &[], 5), None);
    }

    #[test]
    fn a_name_does_not_steer_the_terminal() {
        let proc = FakeProc::new();
        proc.write("7/comm", b"a\x1b[2J\nb\xff\n");
        assert_eq!(
            process_name(proc.path(), 7).unwrap(),
            "a\\u{1b}[2J\\nb\u{fffd}"
        );
        assert_eq!(process_name(proc.path(), 8), None);
    }

    #[test]
    fn real_processes_are_found_whatever_their_names_and_dead_or_alive() {
        let proc = Path::new("/proc");
        let me = std::process::id();
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("c) S 1 (d");
        std::os::unix::fs::symlink("/bin/sh", &odd).unwrap();
        // The empty line says that the child is there; it ends with our pipe.
        let script = "exec 3<&0; cat <&3 & echo; wait";
        let mut shell = Command::new(&odd);
        shell
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(process_name(proc, shell.id()).unwrap(), "c) S 1 (d");
        let below = descendants(proc, me);
        assert!(below.contains(&shell.id()));
        let cat = descendants(proc, shell.id());
        assert_eq!(cat.len(), 1);
        assert!(below.contains(&cat[0]));
        assert_eq!(
            top_of(proc, &[cat[0], shell.id()], shell.id()),
            Some(shell.id())
        );
        shell.kill().unwrap();
        while !Stat::read(&at(proc, shell.id())).unwrap().ended() {
            std::thread::yield_now();
        }
        // It waits to be reaped, and its child has another parent.
        assert!(descendants(proc, me).contains(&shell.id()));
        let pids = [cat[0], shell.id()];
        assert_eq!(top_of(proc, &pids, shell.id()), Some(cat[0]));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }
}
