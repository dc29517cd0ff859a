//! The mappings of a process: what lies where in its address space.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::tree::at;

/// One line of /proc/PID/maps (proc_pid_maps(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// `rwxp`, with `-` for what is not allowed and `s` for what is shared.
    pub permissions: [u8; 4],
    /// Device and inode of the file; inode 0: no file.
    pub file: (u64, u64),
    /// Path of the file, or a name in brackets, or empty. ` (deleted)` ends the path of a file that is gone.
    pub name: PathBuf,
}

impl Mapping {
    /// It maps a file (a shared memory segment is one too, fs/proc/task_mmu.c).
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.file.1 != 0
    }

    /// Bytes of address space.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// `None` where the line is not one of /proc/PID/maps.
    pub(crate) fn parse(line: &[u8]) -> Option<Mapping> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let mut next = || fields.next();
        let (range, permissions, _offset, device, inode) =
            (next()?, next()?, next()?, next()?, next()?);
        let (start, end) = two_numbers(range, '-')?;
        let (major, minor) = two_numbers(device, ':')?;
        let name = next().unwrap_or_default().trim_ascii_start();
        let mapping = Mapping {
            start,
            end,
            permissions: permissions.try_into().ok()?,
            file: (
                (major << 32) | minor,
                str::from_utf8(inode).ok()?.parse().ok()?,
            ),
            name: PathBuf::from(OsStr::from_bytes(name)),
        };
        (start < end).then_some(mapping)
    }
}

fn two_numbers(text: &[u8], between: char) -> Option<(u64, u64)> {
    let (first, second) = str::from_utf8(text).ok()?.split_once(between)?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(first)?, number(second)?))
}

/// All mappings of a process, by address. Kernel threads and ended processes have none.
///
/// # Errors
/// No such process, or no right to read it (ptrace(2), PTRACE_MODE_READ).
pub fn mappings(proc: &Path, pid: u32) -> io::Result<Vec<Mapping>> {
    let text = match fs::read(at(proc, pid).join("maps")) {
        // No memory, or none any more (fs/proc/base.c, proc_mem_open).
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Vec::new(),
        text => text?,
    };
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(Mapping::parse)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    #[test]
    fn a_line_is_read_whatever_the_file_is_called() {
        let proc = FakeProc::new();
        let lines =
            b"1000-3000 r-xp 00002000 fe:01 77                         /lib/a b\\012c (deleted)\n\
            3000-4000 rw-p 00000000 00:00 0 \n\
            7ffe0000-7fff0000 rw-p 00000000 00:00 0                              [stack]\n\
            4000-3000 rw-p 00000000 00:00 0 \nnonsense\n5000-6000 rw-p 0 0 0\n";
        proc.write("3/maps", lines);
        let found = mappings(proc.path(), 3).unwrap();
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].name.as_os_str(), "/lib/a b\\012c (deleted)");
        assert_eq!(
            (found[0].file, &found[0].permissions),
            (((0xfe << 32) | 1, 77), b"r-xp")
        );
        assert!(found[0].is_file() && !found[1].is_file());
        assert_eq!(
            (found[1].bytes(), found[2].name.as_os_str()),
            (4096, OsStr::new("[stack]"))
        );
        assert!(mappings(proc.path(), 4).is_err());
    }
}
