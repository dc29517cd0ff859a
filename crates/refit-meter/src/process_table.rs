//! All processes of the machine at one moment, read cheaply.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use refit_session::names::{GUARDIAN, OPENER, READER};
use rustix::fs::{Mode, OFlags, open, openat};

use crate::stat::Stat;
use crate::tree::is_guardian;

/// A process. Its number and start together are unique since the machine started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since the machine's start.
    pub started: u64,
    /// Its parent's number.
    pub parent: u32,
    /// At most 15 bytes of its own choice; not made printable.
    pub name: String,
    /// It has ended, and waits to be reaped.
    pub ended: bool,
    /// Its threads.
    pub threads: u64,
    /// Resident memory, as the kernel has counted it so far.
    pub rss_bytes: u64,
    /// Address space.
    pub vsz_bytes: u64,
}

/// Reads every process: one open, read and close for each, into one buffer.
/// What another user may not see (the mount options hidepid=1 and 2 of proc) is left out.
#[derive(Debug)]
pub struct ProcessTable {
    path: PathBuf,
    proc: OwnedFd,
    page: u64,
    buffer: Vec<u8>,
}

impl ProcessTable {
    /// For the reports below `proc`, which is /proc except in tests.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(proc: &Path) -> std::io::Result<ProcessTable> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(ProcessTable {
            path: proc.to_owned(),
            proc: open(proc, flags, Mode::empty())?,
            page: rustix::param::page_size() as u64,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// The processes, in ascending order; those that end while the table is read may
    /// be missing. refit's own guardians are left out.
    pub fn read(&mut self) -> Vec<Process> {
        let mut pids: Vec<u32> = rustix::fs::Dir::read_from(&self.proc)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
            .collect();
        pids.sort_unstable();
        let own = [GUARDIAN, OPENER, READER].map(|name| name.to_string_lossy());
        let mut all: Vec<Process> = pids.into_iter().filter_map(|pid| self.one(pid)).collect();
        // Anybody may choose such a name, and only then the executable is asked for.
        all.retain(|process| {
            !(own.iter().any(|name| *name == process.name) && is_guardian(&self.path, process.pid))
        });
        all
    }

    fn one(&mut self, pid: u32) -> Option<Process> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.proc, format!("{pid}/stat"), flags, Mode::empty()).ok()?;
        self.buffer.clear();
        fs::File::from(file).read_to_end(&mut self.buffer).ok()?;
        let stat = Stat::parse(&self.buffer)?;
        Some(Process {
            pid,
            started: stat.started,
            parent: stat.parent,
            name: String::from_utf8_lossy(Stat::name(&self.buffer)).into_owned(),
            ended: stat.ended(),
            threads: stat.threads,
            rss_bytes: stat.resident_pages.saturating_mul(self.page),
            vsz_bytes: stat.virtual_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    #[test]
    fn every_process_is_read_and_nothing_else() {
        let proc = FakeProc::new();
        proc.process(7, "a) R 1 (b", 'S', 1);
        proc.process(3, "ended", 'Z', 7);
        for (pid, executable) in [(5, std::env::current_exe().unwrap()), (6, "/bin/sh".into())] {
            proc.process(pid, "refit-guardian", 'S', 1);
            proc.write(&format!("{pid}/comm"), "refit-guardian\n");
            let link = proc.path().join(format!("{pid}/exe"));
            std::os::unix::fs::symlink(executable, link).unwrap();
        }
        proc.write("9/comm", "without a stat");
        proc.write("11/stat", "garbage");
        proc.write("uptime", "1 1");
        let read = ProcessTable::open(proc.path()).unwrap().read();
        let seen: Vec<_> = read
            .iter()
            .map(|one| (one.pid, &*one.name, one.ended))
            .collect();
        // Of refit's name alone, and of its executable as well.
        let expected = [
            (3, "ended", true),
            (6, "refit-guardian", false),
            (7, "a) R 1 (b", false),
        ];
        assert_eq!(seen, expected);
        assert_eq!((read[2].started, read[2].parent), (99, 1));
        assert_eq!(read[2].rss_bytes, 7 * rustix::param::page_size() as u64);
        assert_eq!(read[2].vsz_bytes, 4096);
    }

    #[test]
    fn a_table_can_be_read_again() {
        let mut table = ProcessTable::open(Path::new("/proc")).unwrap();
        let me = std::process::id();
        for _ in 0..2 {
            let own = table.read().into_iter().find(|one| one.pid == me).unwrap();
            assert!(own.rss_bytes > 0 && own.started > 0 && !own.ended);
        }
        assert!(ProcessTable::open(Path::new("/nowhere")).is_err());
    }
}
