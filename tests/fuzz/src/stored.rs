//! The inputs in a target's directory.

use std::fs;
use std::path::{Path, PathBuf};

/// All of them, by name.
pub fn read(directory: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .collect()
}

/// Stores one under a name made of its content.
pub fn store(directory: &Path, input: &[u8]) -> PathBuf {
    let name = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = directory.join(format!("{name:016x}"));
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&path, input))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}
