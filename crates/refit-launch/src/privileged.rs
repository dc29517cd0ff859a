//! Programs that lose their privilege under no_new_privs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::seccomp::{Reach, Right, right};

/// Those in the directories of a `PATH` that are setuid, setgid, or have file
/// capabilities, by name, each once (execve(2), capabilities(7)).
#[must_use]
pub fn in_path(path: &OsStr) -> Vec<String> {
    let mut found: Vec<String> = std::env::split_paths(path)
        .flat_map(|directory| fs::read_dir(directory).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(is_privileged)
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// At most this many names.
const MOST: usize = 6;

/// What `--no-new-privs` costs, to be reported before it is done; `None` where
/// no_new_privs will not be set.
#[must_use]
pub fn cost(reach: &Reach) -> Option<String> {
    if !reach.no_new_privs || right() != Right::None {
        return None;
    }
    let all = in_path(&std::env::var_os("PATH").unwrap_or_default());
    let named = all[..all.len().min(MOST)].join(", ");
    Some(match all.len() {
        0 => "no_new_privs is set; no program in PATH has a privilege to lose".to_owned(),
        1 => format!("no_new_privs is set: {named} loses its privilege"),
        n if n > MOST => {
            format!("no_new_privs is set: {n} programs in PATH lose their privilege: {named} …")
        }
        _ => format!("no_new_privs is set: these programs lose their privilege: {named}"),
    })
}

fn is_privileged(path: &PathBuf) -> bool {
    let Ok(meta) = fs::metadata(path) else {
        return false;
    };
    let mode = meta.permissions().mode();
    let no_room: &mut [u8] = &mut [];
    // With an empty buffer it returns the length.
    let capable = || rustix::fs::getxattr(path, "security.capability", no_room).is_ok();
    meta.is_file() && mode & 0o111 != 0 && (mode & 0o6000 != 0 || capable())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setuid_program_is_named_once_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [
            ("plain", 0o755),
            ("up", 0o4755),
            ("group", 0o2755),
            ("data", 0o4644),
        ] {
            let file = dir.path().join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let twice = std::env::join_paths([dir.path(), dir.path()]).unwrap();
        assert_eq!(in_path(&twice), ["group", "up"]);
    }
}
