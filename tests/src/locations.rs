//! Where the tests find what they need, and where they make their directories.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::sys;

/// The source tree: recipes, manifests, programs.
pub fn source_dir() -> PathBuf {
    let built_from = || OsString::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    PathBuf::from(std::env::var_os("REFIT_SOURCE").unwrap_or_else(built_from))
}

/// What Debian names this machine's directories of libraries and headers after.
pub fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// Where Debian has a library of this machine's.
pub fn system_library(file: &str) -> String {
    format!("/usr/lib/{}/{file}", multiarch())
}

/// The file of an allocator as Debian has it, which is mimalloc 2 on Debian 12 and mimalloc 3 on 13.
pub fn allocator_file(name: &str) -> &'static str {
    let files: &[&str] = match name {
        "jemalloc" => &["libjemalloc.so.2"],
        "mimalloc" => &["libmimalloc.so.3", "libmimalloc.so.2"],
        "tcmalloc" => &["libtcmalloc_minimal.so.4"],
        _ => panic!("no allocator {name}"),
    };
    let mut there = files
        .iter()
        .filter(|file| PathBuf::from(system_library(file)).exists());
    there.next().unwrap_or(&files[0])
}

/// Cargo's target directory: this executable lies in a profile's directory below it.
pub fn target_dir() -> PathBuf {
    let own = std::env::current_exe().expect("/proc is mounted");
    own.ancestors()
        .nth(2)
        .expect("cargo puts executables two levels below its target")
        .to_owned()
}

/// Where the tests' directories are made: on a disk, since much of what is tested means nothing on tmpfs.
pub fn work_root() -> Result<PathBuf> {
    let root =
        PathBuf::from(std::env::var_os("REFIT_TEST_DIR").unwrap_or_else(|| "/var/tmp".into()));
    if sys::is_memory_filesystem(&root).with_context(|| format!("look at {}", root.display()))? {
        bail!(
            "{} is only memory; set REFIT_TEST_DIR to a directory on a disk",
            root.display()
        );
    }
    Ok(root)
}
