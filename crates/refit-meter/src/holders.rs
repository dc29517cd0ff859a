//! Which processes work in a directory.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Processes below `proc` whose working directory, root or executable lies in
/// `directory`, or whose environment names it as `REFIT_DIR`. Processes that
/// may not be looked at are left out.
#[must_use]
pub fn uses_directory(proc: &Path, directory: &Path) -> Vec<u32> {
    let variable = [b"REFIT_DIR=", directory.as_os_str().as_bytes()].concat();
    let uses = |pid: &u32| {
        let at = proc.join(pid.to_string());
        let lies_in =
            |link: &str| fs::read_link(at.join(link)).is_ok_and(|path| path.starts_with(directory));
        lies_in("cwd")
            || lies_in("root")
            || lies_in("exe")
            || fs::read(at.join("environ")).is_ok_and(|environ| {
                let mut entries = environ.split(|byte| *byte == 0);
                entries.any(|entry| {
                    entry
                        .strip_prefix(&*variable)
                        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
                })
            })
    };
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(uses).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_is_found_by_its_directory_or_its_environment() {
        let dir = tempfile::tempdir().unwrap();
        let cat = |name: &str, cwd: &Path| {
            let mut cat = Command::new("cat");
            cat.env("REFIT_DIR", name)
                .current_dir(cwd)
                .stdin(Stdio::piped());
            cat.spawn().unwrap()
        };
        let below = dir.path().join("0").display().to_string();
        let beside = format!("{}x", dir.path().display());
        let mut all = [
            cat("/nowhere", dir.path()),
            cat(&below, Path::new("/")),
            cat(&beside, Path::new("/")),
        ];
        let mut found = uses_directory(Path::new("/proc"), dir.path());
        found.sort_unstable();
        let mut expected = vec![all[0].id(), all[1].id()];
        expected.sort_unstable();
        assert_eq!(found, expected);
        for child in &mut all {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
