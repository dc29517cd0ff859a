//! What strace wrote, as calls.
//!
//! Beware: strace shows a call at the door of the kernel. One that a seccomp filter answered is here too, with
//! the filter's answer; whether it reached the filesystem, only the filesystem's tracepoints can tell.

use std::collections::BTreeMap;

/// One system call, counted once however many lines it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The thread that made it.
    pub thread: u32,
    pub name: String,
    /// Between the parentheses, as strace prints it.
    pub args: String,
    /// After `= `; `?` when the thread ended inside the call.
    pub result: String,
}

/// The calls in the order in which they began.
#[derive(Debug, Default)]
pub struct Trace {
    pub calls: Vec<Call>,
}

#[allow(dead_code)] // tests take from here what they need
impl Trace {
    pub fn parse(log: &str) -> Self {
        let mut calls: Vec<Call> = Vec::new();
        let mut unfinished: BTreeMap<u32, usize> = BTreeMap::new();
        for line in log.lines() {
            let (thread, rest) = split_thread(line);
            if let Some(resumed) = rest.strip_prefix("<... ") {
                let Some((_name, tail)) = resumed.split_once(" resumed>") else {
                    continue;
                };
                let Some(index) = unfinished.remove(&thread) else {
                    continue;
                };
                let (args, result) = split_result(tail);
                calls[index].args += args;
                result.clone_into(&mut calls[index].result);
                continue;
            }
            let Some((name, tail)) = rest.split_once('(') else {
                continue;
            };
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                continue; // a signal, an exit, a remark of strace's
            }
            let (args, result) = match tail.strip_suffix("<unfinished ...>") {
                Some(args) => {
                    unfinished.insert(thread, calls.len());
                    (args, "?")
                }
                None => split_result(tail),
            };
            calls.push(Call {
                thread,
                name: name.into(),
                args: args.into(),
                result: result.into(),
            });
        }
        Self { calls }
    }

    /// How often each system call was made.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        self.count_by(|_| true)
    }

    /// How often each one was made that asks for something to be written out: see `Call::is_sync`.
    pub fn syncs(&self) -> BTreeMap<&str, usize> {
        self.count_by(Call::is_sync)
    }

    /// How often this system call was made.
    pub fn count(&self, name: &str) -> usize {
        self.calls.iter().filter(|call| call.name == name).count()
    }

    fn count_by(&self, matches: impl Fn(&Call) -> bool) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for call in self.calls.iter().filter(|call| matches(call)) {
            *counts.entry(call.name.as_str()).or_insert(0) += 1;
        }
        counts
    }
}

impl Call {
    /// Whether it asks for a write-out: a sync call (the probes that do no I/O, `sync_file_range` without
    /// flags and `msync` without MS_SYNC, are none), a synchronous open, or a synchronous write.
    pub fn is_sync(&self) -> bool {
        let flags = self.flags();
        match self.name.as_str() {
            "fsync" | "fdatasync" | "sync" | "syncfs" => true,
            "sync_file_range" => !flags.ends_with(", 0"),
            "msync" => flags.contains("MS_SYNC"),
            "open" | "openat" | "openat2" => flags.contains("O_SYNC") || flags.contains("O_DSYNC"),
            "pwritev2" => flags.contains("RWF_SYNC") || flags.contains("RWF_DSYNC"),
            "io_submit" => self.args.contains("FSYNC") || self.args.contains("FDSYNC"),
            _ => false,
        }
    }

    /// The part of the arguments where flags are, with no file's name that could look like one.
    pub fn flags(&self) -> &str {
        let how = match self.name.as_str() {
            // After the struct's known fields strace prints the bytes that it does not know.
            "openat2" => self.args.rsplit_once("{flags="),
            _ => None,
        };
        let behind_names = || self.args.rsplit('"').next().unwrap_or_default();
        how.map_or_else(behind_names, |(_, how)| {
            how.split('"').next().unwrap_or_default()
        })
        .trim_end()
    }
}

/// `123  rest` → 123, `rest`; without `-f` there is no number, and thread 0 stands for the only one.
fn split_thread(line: &str) -> (u32, &str) {
    line.split_once(' ')
        .and_then(|(number, rest)| Some((number.parse().ok()?, rest.trim_start())))
        .unwrap_or((0, line))
}

/// `args) = result` → args, result. strace pads with spaces before the `=`.
fn split_result(tail: &str) -> (&str, &str) {
    let Some((before, result)) = tail.rsplit_once("= ") else {
        return (tail, "?");
    };
    match before.trim_end().strip_suffix(')') {
        Some(args) => (args, result),
        None => (tail, "?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(thread: u32, name: &str, args: &str, result: &str) -> Call {
        Call {
            thread,
            name: name.into(),
            args: args.into(),
            result: result.into(),
        }
    }

    #[test]
    fn an_interrupted_line_is_one_call() {
        let log = "\
10 fsync(3 <unfinished ...>
11 fdatasync(4)                      = 0
10 <... fsync resumed>)              = -1 EINVAL (Invalid argument)
11 fsync(9 <unfinished ...>
11 +++ killed by SIGKILL +++
10 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED} ---
10 exit_group(0)                     = ?
";
        let trace = Trace::parse(log);
        assert_eq!(
            trace.calls,
            [
                call(10, "fsync", "3 ", "-1 EINVAL (Invalid argument)"),
                call(11, "fdatasync", "4", "0"),
                call(11, "fsync", "9 ", "?"),
                call(10, "exit_group", "0", "?"),
            ]
        );
        assert_eq!(trace.count("fsync"), 2);
        assert_eq!(
            trace.syncs(),
            BTreeMap::from([("fdatasync", 1), ("fsync", 2)])
        );
    }

    #[test]
    fn arguments_may_look_like_the_end_of_a_call() {
        let trace = Trace::parse("openat(AT_FDCWD, \"a) = 3 O_SYNC\", O_RDONLY) = 4\n");
        assert_eq!(
            trace.calls,
            [call(
                0,
                "openat",
                "AT_FDCWD, \"a) = 3 O_SYNC\", O_RDONLY",
                "4"
            )]
        );
        assert!(trace.syncs().is_empty());
    }

    #[test]
    fn only_what_asks_for_a_write_out_is_a_sync() {
        let cases = [
            ("fsync(3) = 0", true),
            ("sync() = 0", true),
            ("sync_file_range(3, 0, 0, 0) = 0", false),
            ("sync_file_range(3, 0, 0, SYNC_FILE_RANGE_WRITE) = 0", true),
            (
                "sync_file_range(3, 0, 0, 0x99 /* SYNC_FILE_RANGE_??? */) = -1 EINVAL (Invalid argument)",
                true,
            ),
            ("msync(0x7f0000, 4096, MS_ASYNC) = 0", false),
            ("msync(0x7f0000, 4096, MS_SYNC|MS_INVALIDATE) = 0", true),
            (
                "openat(AT_FDCWD, \"f\", O_RDWR|O_CREAT|O_DSYNC, 0600) = 3",
                true,
            ),
            ("openat(AT_FDCWD, \"f\", O_RDWR|__O_SYNC) = 3", true),
            (
                "openat2(AT_FDCWD, \"f\", {flags=O_RDWR|O_SYNC, resolve=0}, 24) = 3",
                true,
            ),
            (
                "openat2(AT_FDCWD, \"f\", {flags=O_DSYNC, resolve=0, /* bytes 24..31 */ \"\\1\"}, 32) = 3",
                true,
            ),
            ("openat(AT_FDCWD, \"O_SYNC\", O_RDWR) = 3", false),
            ("10 sync_file_range(3, 0, 0, 0 <unfinished ...>", false),
            (
                "pwritev2(3, [{iov_base=\"x\", iov_len=1}], 1, 0, RWF_DSYNC) = 1",
                true,
            ),
            (
                "pwritev2(3, [{iov_base=\"x\", iov_len=1}], 1, 0, 0) = 1",
                false,
            ),
            ("write(3, \"fsync\", 5) = 5", false),
        ];
        for (line, expected) in cases {
            let trace = Trace::parse(line);
            assert_eq!(trace.calls.len(), 1, "{line}");
            assert_eq!(trace.calls[0].is_sync(), expected, "{line}");
        }
    }
}
