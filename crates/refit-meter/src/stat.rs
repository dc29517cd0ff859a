//! One process in /proc/PID/stat.

use std::fs;
use std::path::Path;

/// Fields of /proc/PID/stat (proc_pid_stat(5); fs/proc/array.c, do_task_stat).
/// Times and faults are those of all threads, the ended ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub state: u8,
    pub parent: u32,
    pub minor_faults: u64,
    pub children_minor_faults: u64,
    pub major_faults: u64,
    pub children_major_faults: u64,
    /// Ticks of 1/100 s.
    pub user: u64,
    pub system: u64,
    pub children_user: u64,
    pub children_system: u64,
    pub threads: u64,
    /// Ticks after the machine's start. A process of the same number that started
    /// later is another.
    pub started: u64,
    pub virtual_bytes: u64,
    /// What the kernel has counted so far; each thread may hold back a few pages.
    pub resident_pages: u64,
}

/// Threads of a process; `None` where it is gone.
#[must_use]
pub fn threads(proc: &Path, pid: u32) -> Option<u64> {
    Some(Stat::read(&proc.join(pid.to_string()))?.threads)
}

impl Stat {
    /// `None` where the process is gone, or the text is none of the kernel's.
    pub fn read(directory: &Path) -> Option<Stat> {
        Stat::parse(&fs::read(directory.join("stat")).ok()?)
    }

    pub fn parse(text: &[u8]) -> Option<Stat> {
        // A name may hold spaces, parentheses and bytes that are not UTF-8. No
        // field after it has a parenthesis.
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let rest = str::from_utf8(&text[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts from 1, and two fields were skipped.
        let number = |field: usize| fields.get(field - 3)?.parse().ok();
        Some(Stat {
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            minor_faults: number(10)?,
            children_minor_faults: number(11)?,
            major_faults: number(12)?,
            children_major_faults: number(13)?,
            user: number(14)?,
            system: number(15)?,
            // Signed in the kernel's table, but never below 0.
            children_user: number(16)?,
            children_system: number(17)?,
            threads: number(20)?,
            started: number(22)?,
            virtual_bytes: number(23)?,
            resident_pages: number(24)?,
        })
    }

    /// The name in the same text: at most 15 bytes of the process's own choice.
    pub fn name(text: &[u8]) -> &[u8] {
        let begin = text.iter().position(|byte| *byte == b'(');
        let end = text.iter().rposition(|byte| *byte == b')');
        begin
            .zip(end)
            .and_then(|(begin, end)| text.get(begin + 1..end))
            .unwrap_or_default()
    }

    /// Its first thread has ended. The others of a process may go on: then they
    /// count here, next to the first (kernel: delay_group_leader).
    pub fn leader_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// All of it has ended; it only waits to be reaped.
    pub fn ended(&self) -> bool {
        self.leader_ended() && self.threads <= 1
    }
}

/// A /proc to try readers on.
#[cfg(test)]
pub(crate) struct FakeProc(pub tempfile::TempDir);

#[cfg(test)]
impl FakeProc {
    pub fn new() -> FakeProc {
        FakeProc(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A process of 4096 virtual bytes, whose other numbers are 1 to 8.
    pub fn process(&self, pid: u32, name: &str, state: char, parent: u32) {
        let text = format!(
            "{pid} ({name}) {state} {parent} 0 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 7 0\n"
        );
        self.write(&format!("{pid}/stat"), text);
    }

    pub fn smaps(&self, pid: u32, rss_kib: u64, pss_kib: u64, swap_kib: u64) {
        let text = format!(
            "00400000-7ffe0000 ---p 00000000 00:00 0   [rollup]\n\
             Rss:   {rss_kib} kB\nPss:   {pss_kib} kB\nPss_Anon:   7 kB\n\
             Swap:   9999 kB\nSwapPss:   {swap_kib} kB\n"
        );
        self.write(&format!("{pid}/smaps_rollup"), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_fields_after_it() {
        let proc = FakeProc::new();
        for name in ["a b", "x) R 1 (y", "a)", "", ") ) ("] {
            proc.process(5, name, 'S', 77);
            let stat = Stat::read(&proc.path().join("5")).unwrap();
            assert_eq!((stat.state, stat.parent), (b'S', 77), "{name}");
            assert_eq!((stat.minor_faults, stat.children_system), (1, 8));
            assert_eq!((stat.threads, stat.virtual_bytes), (1, 4096));
            assert_eq!((stat.started, stat.resident_pages), (99, 7));
            let text = fs::read(proc.path().join("5/stat")).unwrap();
            assert_eq!(Stat::name(&text), name.as_bytes());
        }
    }

    #[test]
    fn garbage_is_no_process() {
        let good = b"5 (a) S 1 0 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 7 0\n";
        assert!(Stat::parse(good).is_some());
        for end in 0..=good.len() - b"7 0\n".len() {
            assert_eq!(Stat::parse(&good[..end]), None, "{end}");
        }
        for text in [
            "",
            ")",
            "(",
            ") S",
            "1 (a) S x 0",
            "\u{0}",
            "5 (a) S 99999999999 0",
        ] {
            assert_eq!(Stat::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Stat::parse(b"5 (a) \xff\xfe"), None);
    }

    #[test]
    fn only_a_process_without_threads_left_has_ended() {
        let stat = |state, threads| Stat {
            state,
            threads,
            ..Stat::default()
        };
        assert!(stat(b'Z', 1).ended());
        assert!(!stat(b'Z', 2).ended());
        assert!(!stat(b'D', 1).ended());
    }
}
