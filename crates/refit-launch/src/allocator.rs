//! Allocators as the distribution installs them. Found, never shipped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use refit_knobs::{Allocator, AllocatorKind, NamedAllocator};
use refit_packages::how_to_install;

use crate::LaunchError;
use crate::arch::{ELF_MACHINE, LIBRARIES};
pub use crate::error::Missing;

/// Where the system's libraries lie.
pub const DIRECTORIES: [&str; 6] = [
    LIBRARIES[0],
    LIBRARIES[1],
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
];

/// The path of an allocator's library; `dir` is searched before the system's directories, and `open` opens a path of
/// the system for which it is meant, this one or a tree.
///
/// # Errors
/// [`Missing`], with the line that installs it.
pub fn find(
    allocator: &NamedAllocator,
    dir: Option<&Path>,
    open: impl Fn(&Path) -> Option<File>,
) -> Result<PathBuf, Missing> {
    let directories = || dir.into_iter().chain(DIRECTORIES.iter().map(Path::new));
    let mut paths =
        directories().flat_map(|dir| allocator.files.iter().map(move |file| dir.join(file)));
    paths
        .find(|path| open(path).is_some_and(is_for_this_machine))
        .ok_or_else(|| Missing {
            name: allocator.name,
            files: allocator.files.join(" or "),
            searched: directories()
                .map(|dir| dir.display().to_string())
                .collect::<Vec<_>>()
                .join(", "),
            install: how_to_install(&[allocator.name]),
        })
}

/// Opens a path of this system.
#[must_use]
pub fn here(path: &Path) -> Option<File> {
    File::open(path).ok()
}

/// Whether a file is a shared object for programs like refit: /usr/lib can hold those of 32 bits.
fn is_for_this_machine(mut file: File) -> bool {
    let mut header = [0; 64];
    file.read_exact(&mut header).is_ok() && is_shared_object(&header)
}

/// ELF, 64 bits, little-endian, `ET_DYN`, and the machine of refit itself: the first bytes of such a file (elf(5)).
#[must_use]
pub fn is_shared_object(content: &[u8]) -> bool {
    content.len() >= 64
        && content.starts_with(b"\x7fELF\x02\x01")
        && content[16..18] == [3, 0]
        && content[18..20] == ELF_MACHINE.to_le_bytes()
}

/// The library that a `malloc=` setting preloads; `None` for the C library's own.
///
/// # Errors
/// [`LaunchError::AllocatorMissing`].
pub fn library(allocator: &Allocator, dir: Option<&Path>) -> Result<Option<PathBuf>, LaunchError> {
    match &allocator.kind {
        AllocatorKind::Path(path) => Ok(Some(path.clone())),
        AllocatorKind::Named(named) if named.is_c_librarys() => Ok(None),
        AllocatorKind::Named(named) => {
            let found = find(named, dir, here).map_err(LaunchError::AllocatorMissing)?;
            Ok(Some(found))
        }
    }
}
