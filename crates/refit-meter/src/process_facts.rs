//! What the kernel tells about one process: whether it is alive, whose it is, how it was started, and its huge pages.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use refit_session::printable;

use crate::process_memory::kib;
use crate::stat::Stat;
use crate::tree::{at, process_name};

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A program that runs.
    Program,
    /// It has ended and waits to be reaped by this process.
    Zombie(u32),
    /// A thread of the kernel's own, without memory.
    Kernel,
    /// A thread of this process.
    ThreadOf(u32),
}

/// Facts about one process. `None`: the kernel refused it, or does not tell.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// Its name, printable.
    pub name: String,
    /// What it is.
    pub life: Life,
    /// User id whose rights it has.
    pub user: Option<u32>,
    /// Its executable, as it was called when it was opened.
    pub executable: Option<PathBuf>,
    /// It was started in secure-execution mode (ld.so(8)): set-id, or with capabilities of its file.
    pub is_secure: Option<bool>,
    /// Its environment when it was started: it may have changed it since.
    pub variables: Option<Vec<(String, String)>>,
    /// Huge pages are allowed to it; `false` after prctl(2), PR_SET_THP_DISABLE.
    pub thp_allowed: Option<bool>,
    /// Its memory in transparent huge pages.
    pub huge_bytes: Option<u64>,
}

/// The executable of a process; its name where the kernel does not tell. `None`: it is gone.
pub(crate) fn executable_of(proc: &Path, pid: u32) -> Option<String> {
    let link = fs::read_link(at(proc, pid).join("exe")).ok();
    let link = link.map(|path| printable(&path.display().to_string()));
    link.or_else(|| process_name(proc, pid))
}

/// AT_SECURE of getauxval(3).
const AT_SECURE: u64 = 23;

/// An entry of /proc/PID/auxv (proc_pid_auxv(5)).
pub(crate) fn auxiliary(auxv: &[u8], wanted: u64) -> Option<u64> {
    let word = |bytes: &[u8]| Some(u64::from_ne_bytes(bytes.try_into().ok()?));
    let mut entries = auxv.chunks_exact(16);
    let entry = entries.find(|entry| word(&entry[..8]) == Some(wanted))?;
    word(&entry[8..])
}

/// AT_PAGESZ of getauxval(3).
const AT_PAGESZ: u64 = 6;

/// Bytes of a page, as the kernel tells this process (getauxval(3), AT_PAGESZ).
pub(crate) fn page() -> u64 {
    static PAGE: OnceLock<u64> = OnceLock::new();
    *PAGE.get_or_init(|| {
        let auxv = fs::read("/proc/self/auxv").unwrap_or_default();
        auxiliary(&auxv, AT_PAGESZ)
            .filter(|bytes| *bytes > 0)
            .unwrap_or(4096)
    })
}

/// The facts about a process or thread.
///
/// # Errors
/// There is none of this number.
pub fn process_facts(proc: &Path, pid: u32) -> io::Result<ProcessFacts> {
    let directory = at(proc, pid);
    let status = fs::read(directory.join("status"))?;
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| {
        let mut lines = status
            .lines()
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        lines.next().map(str::trim)
    };
    let stat = Stat::read(&directory).ok_or(io::ErrorKind::NotFound)?;
    let auxv = fs::read(directory.join("auxv")).ok();
    let auxv = auxv.filter(|auxv| !auxv.is_empty());
    let group = field("Tgid").and_then(|group| group.parse().ok());
    let life = match group {
        Some(group) if group != pid => Life::ThreadOf(group),
        _ if stat.ended() => Life::Zombie(stat.parent),
        // Only what has memory has this line (fs/proc/array.c, proc_pid_status).
        _ if field("VmSize").is_none() && !stat.leader_ended() => Life::Kernel,
        _ => Life::Program,
    };
    let rollup = fs::read_to_string(directory.join("smaps_rollup")).ok();
    Ok(ProcessFacts {
        name: process_name(proc, pid).unwrap_or_default(),
        life,
        user: field("Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()),
        executable: fs::read_link(directory.join("exe")).ok(),
        is_secure: auxv.and_then(|auxv| Some(auxiliary(&auxv, AT_SECURE)? != 0)),
        variables: fs::read(directory.join("environ"))
            .ok()
            .map(|text| variables(&text)),
        thp_allowed: field("THP_enabled").map(|allowed| allowed != "0"),
        huge_bytes: rollup.and_then(|text| kib(&text, "AnonHugePages")),
    })
}

fn variables(environ: &[u8]) -> Vec<(String, String)> {
    let texts = environ
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy);
    let pairs = texts.filter_map(|text| {
        let (name, value) = text.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    const STATUS: &str = "Name:\tx\nTgid:\t7\nUid:\t1\t2\t3\t4\n";

    #[test]
    fn a_program_a_kernel_thread_a_thread_and_a_zombie_are_told_apart() {
        let proc = FakeProc::new();
        let life = |state, status: String| {
            proc.process(7, "x", state, 5);
            proc.write("7/status", status);
            process_facts(proc.path(), 7).unwrap().life
        };
        assert_eq!(life('S', format!("{STATUS}VmSize:\t1 kB\n")), Life::Program);
        assert_eq!(life('S', STATUS.to_owned()), Life::Kernel);
        assert_eq!(life('Z', STATUS.to_owned()), Life::Zombie(5));
        assert_eq!(
            life('S', STATUS.replace("Tgid:\t7", "Tgid:\t3")),
            Life::ThreadOf(3)
        );
        assert!(process_facts(proc.path(), 8).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let proc = FakeProc::new();
        proc.process(7, "x", 'S', 5);
        proc.write("7/status", format!("{STATUS}THP_enabled:\t0\n"));
        let facts = process_facts(proc.path(), 7).unwrap();
        assert_eq!((facts.user, facts.thp_allowed), (Some(2), Some(false)));
        assert!(
            facts.is_secure.is_none() && facts.variables.is_none() && facts.huge_bytes.is_none()
        );
        let entry = |key: u64, value: u64| [key.to_ne_bytes(), value.to_ne_bytes()].concat();
        proc.write(
            "7/auxv",
            [entry(6, 4096), entry(23, 1), entry(0, 0)].concat(),
        );
        proc.write("7/environ", b"A=1\0nonsense\0B=2=3\0\xff=x\0");
        let facts = process_facts(proc.path(), 7).unwrap();
        assert_eq!(facts.is_secure, Some(true));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = vec![pair("A", "1"), pair("B", "2=3"), pair("\u{fffd}", "x")];
        assert_eq!(facts.variables, Some(expected));
    }
}
