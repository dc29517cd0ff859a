//! Where the commands of recipes are found.

use std::env;
use std::path::{Path, PathBuf};

/// Directories of servers, which are not in a user's PATH.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The PATH of every command of a recipe: the user's own, and the directories of servers.
#[must_use]
pub fn command_path() -> String {
    let joined = env::join_paths(directories()).unwrap_or_default();
    joined.to_string_lossy().into_owned()
}

/// The file of a command that is found by its name.
pub fn find_command(name: &str) -> Option<PathBuf> {
    let mut files = directories().into_iter().map(|dir| dir.join(name));
    files.find(|file| file.is_file())
}

fn directories() -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    for dir in SYSTEM {
        if !dirs.iter().any(|known| known == Path::new(dir)) {
            dirs.push(dir.into());
        }
    }
    dirs
}
