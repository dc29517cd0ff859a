//! What one process has in memory, by the kernel's own sums.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::stat::Stat;
use crate::tree::at;

/// The memory of a process: sums of /proc/PID/smaps_rollup (proc.rst; Linux 4.14), and its
/// page tables. In bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Resident memory; what processes share counts in each.
    pub rss_bytes: u64,
    /// Proportional: a page that n processes map counts 1/n in each.
    pub pss_bytes: u64,
    /// Of that, memory that is no file's: heap, stacks, anonymous mappings.
    pub pss_anonymous_bytes: u64,
    /// Of that, pages of mapped files.
    pub pss_file_bytes: u64,
    /// Of that, shared memory and tmpfs.
    pub pss_shared_bytes: u64,
    /// What no other process maps, and would be free if it ended.
    pub uss_bytes: u64,
    /// Swapped out, shared proportionally. In none of the above.
    pub swap_bytes: u64,
    /// Page tables (VmPTE): kernel memory, in none of the above.
    pub page_tables_bytes: u64,
}

impl Memory {
    /// Adds another process's.
    pub fn add(&mut self, other: &Memory) {
        let fields: [(&mut u64, u64); 8] = [
            (&mut self.rss_bytes, other.rss_bytes),
            (&mut self.pss_bytes, other.pss_bytes),
            (&mut self.pss_anonymous_bytes, other.pss_anonymous_bytes),
            (&mut self.pss_file_bytes, other.pss_file_bytes),
            (&mut self.pss_shared_bytes, other.pss_shared_bytes),
            (&mut self.uss_bytes, other.uss_bytes),
            (&mut self.swap_bytes, other.swap_bytes),
            (&mut self.page_tables_bytes, other.page_tables_bytes),
        ];
        for (sum, more) in fields {
            *sum = sum.saturating_add(more);
        }
    }
}

/// What came of reading a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryReading {
    /// It was read.
    Read(Memory),
    /// It has none: it has ended, or is a thread of the kernel.
    None,
    /// It may not be read, or the text is none of the kernel's.
    Unreadable,
}

/// Where a process's memory is shown, if it has any: not in its own directory
/// when its first thread has ended and others go on (fs/proc/task_mmu.c, the mm
/// is the task's).
pub(crate) fn shown_in(directory: PathBuf, stat: &Stat, pid: u32) -> Option<PathBuf> {
    if !stat.leader_ended() {
        return Some(directory);
    }
    let own = pid.to_string();
    let threads = fs::read_dir(directory.join("task"))
        .into_iter()
        .flatten()
        .flatten();
    let mut others = threads.filter(|entry| *entry.file_name() != *own);
    others.next().map(|entry| entry.path())
}

/// The value of a line such as `Pss:    1234 kB`, in bytes.
pub(crate) fn kib(text: &str, name: &str) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number: u64 = lines
        .next()?
        .trim()
        .strip_suffix("kB")?
        .trim_end()
        .parse()
        .ok()?;
    Some(number.saturating_mul(1024))
}

/// The text of smaps_rollup, `Ok(None)` where there is no memory (any more).
pub(crate) fn rollup_text(shown: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(shown.join("smaps_rollup")) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !shown.exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the memory of a process. While it does, the kernel walks the process's page
/// tables, which takes a time that grows with its memory and its mappings.
#[must_use]
pub fn process_memory(proc: &Path, pid: u32) -> MemoryReading {
    let directory = at(proc, pid);
    let Some(stat) = Stat::read(&directory) else {
        return MemoryReading::None;
    };
    let Some(shown) = shown_in(directory, &stat, pid) else {
        return MemoryReading::None;
    };
    let text = match rollup_text(&shown) {
        Ok(Some(text)) => text,
        Ok(None) => return MemoryReading::None,
        Err(_) => return MemoryReading::Unreadable,
    };
    // A process that ends meanwhile has no such line any more.
    let status = fs::read_to_string(shown.join("status")).unwrap_or_default();
    let page_tables = kib(&status, "VmPTE").unwrap_or(0);
    parse(&text, page_tables).map_or(MemoryReading::Unreadable, MemoryReading::Read)
}

fn parse(text: &str, page_tables_bytes: u64) -> Option<Memory> {
    let value = |name| kib(text, name);
    let private = value("Private_Clean")?.saturating_add(value("Private_Dirty")?);
    let (pss, anonymous) = (value("Pss")?, value("Pss_Anon"));
    // Before Linux 5.4 the parts are not told apart.
    let (file, shared) = (value("Pss_File"), value("Pss_Shmem"));
    Some(Memory {
        rss_bytes: value("Rss")?,
        pss_bytes: pss,
        pss_anonymous_bytes: anonymous.unwrap_or(pss),
        pss_file_bytes: file.unwrap_or(0),
        pss_shared_bytes: shared.unwrap_or(0),
        uss_bytes: private,
        swap_bytes: value("SwapPss")?,
        page_tables_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;
    use std::process::{Command, Stdio};

    const TEXT: &str = "00400000-7ffe0000 ---p 00000000 00:00 0   [rollup]\n\
        Rss: 100 kB\nPss: 60 kB\nPss_Anon: 40 kB\nPss_File: 15 kB\nPss_Shmem: 5 kB\n\
        Private_Clean: 3 kB\nPrivate_Dirty: 30 kB\nSwap: 99 kB\nSwapPss: 7 kB\n";

    #[test]
    fn the_kernel_s_sums_are_read() {
        let proc = FakeProc::new();
        proc.process(3, "a", 'S', 1);
        proc.write("3/smaps_rollup", TEXT);
        proc.write("3/status", "Name: a\nVmPTE:\t  44 kB\n");
        let MemoryReading::Read(memory) = process_memory(proc.path(), 3) else {
            panic!("it is there");
        };
        let expected = [100, 60, 40, 15, 5, 33, 7, 44].map(|kib| kib * 1024);
        let read = [
            memory.rss_bytes,
            memory.pss_bytes,
            memory.pss_anonymous_bytes,
            memory.pss_file_bytes,
            memory.pss_shared_bytes,
            memory.uss_bytes,
            memory.swap_bytes,
            memory.page_tables_bytes,
        ];
        assert_eq!(read, expected);
        let mut twice = memory;
        twice.add(&memory);
        assert_eq!(twice.uss_bytes, 2 * memory.uss_bytes);
    }

    #[test]
    fn who_ended_has_none_and_who_may_not_be_read_is_not_zero() {
        let proc = FakeProc::new();
        assert_eq!(process_memory(proc.path(), 3), MemoryReading::None);
        proc.process(3, "ended", 'Z', 1);
        proc.write("3/smaps_rollup", TEXT);
        assert_eq!(process_memory(proc.path(), 3), MemoryReading::None);
        proc.process(4, "hidden", 'S', 1);
        assert_eq!(process_memory(proc.path(), 4), MemoryReading::Unreadable);
        for end in 0..TEXT.len() - 1 {
            proc.write("4/smaps_rollup", &TEXT[..end]);
            assert_eq!(
                process_memory(proc.path(), 4),
                MemoryReading::Unreadable,
                "{end}"
            );
        }
    }

    #[test]
    fn of_a_real_process_the_parts_are_the_whole() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let MemoryReading::Read(memory) = process_memory(Path::new("/proc"), cat.id()) else {
            panic!("it runs");
        };
        let parts = memory.pss_anonymous_bytes + memory.pss_file_bytes + memory.pss_shared_bytes;
        // Each of the four is rounded down to a KiB.
        assert!(parts.abs_diff(memory.pss_bytes) <= 3 << 10, "{memory:?}");
        assert!(memory.uss_bytes > 0 && memory.uss_bytes <= memory.pss_bytes);
        assert!(memory.page_tables_bytes > 0);
        drop(cat.stdin.take());
        cat.wait().unwrap();
        assert_eq!(
            process_memory(Path::new("/proc"), cat.id()),
            MemoryReading::None
        );
    }
}
