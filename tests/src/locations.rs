//! Where the tests find what they need, and where they make their directories.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

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

/// The file, or where root keeps it in a place that other users may not enter, as below /root, a copy beside the
/// directory of this test: root's tests start programs that drop their privileges.
pub fn for_everybody(file: PathBuf) -> PathBuf {
    let lets_in = |dir: &Path| fs::metadata(dir).is_ok_and(|dir| dir.permissions().mode() & 1 != 0);
    let Some(dir) = std::env::var_os(TEST_ENV_DIR).filter(|_| sys::euid() == 0) else {
        return file;
    };
    let real = file.canonicalize().unwrap_or_else(|_| file.clone());
    if real.ancestors().skip(1).all(lets_in) {
        return file;
    }
    let place = Path::new(&dir).with_file_name("for-everybody");
    let copy = place.join(file.file_name().expect("it is a file"));
    // Threads of a test may want it at once.
    static COPYING: Mutex<()> = Mutex::new(());
    let guard = COPYING.lock().unwrap_or_else(PoisonError::into_inner);
    if !copy.exists() {
        // By another process: a program that this one has open for writing, or a child that it forks meanwhile, is
        // busy (execve(2), ETXTBSY).
        let made = Command::new("install")
            .args(["-D", "-m", "0755"])
            .args([&file, &copy])
            .output();
        let made = made.expect("install is there");
        assert!(made.status.success(), "copy {}: {made:?}", file.display());
        // Whatever the umask.
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("it was just made");
    }
    drop(guard);
    copy
}

/// The variable that names the directory of the test that a process runs.
pub const TEST_ENV_DIR: &str = "REFIT_TEST_ENV_DIR";

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
