//! Which processes work in a directory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::stat::Stat;

/// Processes below `proc` whose environment names `directory` as `REFIT_DIR`,
/// and those without a terminal whose working directory, root, executable or a file
/// that is open for writing lies in it: a person's shell in it does not count, nor
/// who only reads there, as a backup does or another refit that looks at its lock.
/// Processes that may not be inspected are left out.
#[must_use]
pub fn uses_directory(proc: &Path, directory: &Path) -> Vec<u32> {
    let variable = [b"REFIT_DIR=", directory.as_os_str().as_bytes()].concat();
    let is_started_for_it = |at: &Path| {
        fs::read(at.join("environ")).is_ok_and(|environ| {
            let mut entries = environ.split(|byte| *byte == 0);
            entries.any(|entry| {
                entry
                    .strip_prefix(&*variable)
                    .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
            })
        })
    };
    let lies_in = |link: &Path| fs::read_link(link).is_ok_and(|path| path.starts_with(directory));
    let uses = |pid: &u32| {
        let at = living_thread(proc.join(pid.to_string()));
        is_started_for_it(&at)
            || !has_terminal(&at)
                && (["cwd", "root", "exe"]
                    .iter()
                    .any(|link| lies_in(&at.join(link)))
                    || fs::read_dir(at.join("fd"))
                        .into_iter()
                        .flatten()
                        .flatten()
                        .any(|fd| lies_in(&fd.path()) && is_writable(&at, &fd.file_name())))
    };
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(uses).collect()
}

/// Where to look at a process: once its first thread has ended, the files and the
/// environment are shown for the other threads only.
fn living_thread(process: PathBuf) -> PathBuf {
    let lives = |at: &Path| Stat::read(at).is_some_and(|stat| !stat.leader_ended());
    if lives(&process) {
        return process;
    }
    let threads = fs::read_dir(process.join("task"));
    let mut threads = threads.into_iter().flatten().flatten();
    let living = threads.find(|thread| lives(&thread.path()));
    living.map_or(process, |thread| thread.path())
}

/// Whether the process opened a descriptor for writing: the last octal digits of its
/// `flags:` are the access mode (proc(5), fdinfo).
fn is_writable(process: &Path, descriptor: &OsStr) -> bool {
    let info = fs::read_to_string(process.join("fdinfo").join(descriptor)).unwrap_or_default();
    let mut lines = info.lines();
    let flags = lines.find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| {
        OFlags::from_bits_retain(flags).intersects(OFlags::WRONLY | OFlags::RDWR)
    })
}

/// Field 7 of /proc/PID/stat, tty_nr, is 0 without one (proc(5)).
fn has_terminal(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' '));
    fields
        .and_then(|mut fields| fields.nth(4))
        .is_some_and(|tty| tty != "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// Without a terminal, wherever the tests are started.
    fn cat(name: &str, cwd: &Path, output: Stdio) -> Child {
        let mut cat = Command::new("setsid");
        cat.arg("cat").env("REFIT_DIR", name).current_dir(cwd);
        cat.stdin(Stdio::piped()).stdout(output).spawn().unwrap()
    }

    #[test]
    fn a_process_is_found_by_its_directory_its_files_or_its_environment() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("0").display().to_string();
        let sibling = format!("{}x", dir.path().display());
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let read = fs::File::open(dir.path().join("log")).unwrap();
        let mut all = [
            cat("/nowhere", dir.path(), Stdio::null()),
            cat(&below, Path::new("/"), Stdio::null()),
            cat("/nowhere", Path::new("/"), log.into()),
            cat(&sibling, Path::new("/"), Stdio::null()),
            cat("/nowhere", Path::new("/"), read.into()),
        ];
        let mut expected: Vec<u32> = all[..3].iter().map(Child::id).collect();
        expected.sort_unstable();
        // setsid has to become cat first.
        let mut found = Vec::new();
        for _ in 0..500 {
            found = uses_directory(Path::new("/proc"), dir.path());
            found.sort_unstable();
            if found == expected {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert_eq!(found, expected);
        for child in &mut all {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_process_with_a_terminal_does_not_count() {
        let proc = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        for (pid, tty) in [("7", "34816"), ("8", "0")] {
            let at = proc.path().join(pid);
            fs::create_dir(&at).unwrap();
            fs::write(at.join("stat"), format!("{pid} (a) b) S 1 7 7 {tty} 7 0")).unwrap();
            std::os::unix::fs::symlink(dir.path(), at.join("cwd")).unwrap();
        }
        assert_eq!(uses_directory(proc.path(), dir.path()), [8]);
    }
}
