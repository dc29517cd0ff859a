//! Allocators as the distribution installs them. Found, never shipped.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use refit_knobs::{Allocator, AllocatorKind};
use refit_packages::how_to_install;

use crate::LaunchError;
use crate::arch::{ELF_MACHINE, LIBRARIES};

/// One allocator that refit knows by name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The setting's word, and its purpose in the table of packages.
    pub name: &'static str,
    /// File names, the preferred first.
    pub files: &'static [&'static str],
}

/// Every allocator that can be named, but for glibc's own.
pub const KNOWN: [Known; 3] = [
    Known {
        name: "jemalloc",
        files: &["libjemalloc.so.2"],
    },
    Known {
        name: "mimalloc",
        files: &[
            "libmimalloc.so.3",
            "libmimalloc.so.2",
            "libmimalloc.so.2.0",
            "libmimalloc.so",
        ],
    },
    Known {
        name: "tcmalloc",
        files: &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
    },
];

/// Where the system's libraries lie.
pub const DIRECTORIES: [&str; 6] = [
    LIBRARIES[0],
    LIBRARIES[1],
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
];

/// The path of an allocator's library; `dir` is searched first.
#[must_use]
pub fn find(known: &Known, dir: Option<&Path>) -> Option<PathBuf> {
    dir.into_iter()
        .chain(DIRECTORIES.iter().map(Path::new))
        .flat_map(|dir| known.files.iter().map(move |file| dir.join(file)))
        .find(|path| is_for_this_machine(path))
}

/// Whether a file is a shared object for programs like refit: /usr/lib can hold those of 32 bits.
fn is_for_this_machine(path: &Path) -> bool {
    let mut header = [0; 64];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && is_shared_object(&header)
}

/// ELF, 64 bits, little-endian, `ET_DYN`, and the machine of refit itself: the first bytes of such a file (elf(5)).
#[must_use]
pub fn is_shared_object(content: &[u8]) -> bool {
    content.len() >= 64
        && content.starts_with(b"\x7fELF\x02\x01")
        && content[16..18] == [3, 0]
        && content[18..20] == ELF_MACHINE.to_le_bytes()
}

/// The C library.
#[must_use]
pub fn c_library() -> Option<PathBuf> {
    let mut paths = DIRECTORIES
        .iter()
        .map(|dir| Path::new(dir).join("libc.so.6"));
    paths.find(|path| path.exists())
}

/// The library that a `malloc=` setting preloads; `None` for glibc's own.
///
/// # Errors
/// [`LaunchError::AllocatorMissing`] with the line that installs it.
pub fn library(allocator: &Allocator, dir: Option<&Path>) -> Result<Option<PathBuf>, LaunchError> {
    let name = match &allocator.kind {
        AllocatorKind::Glibc => return Ok(None),
        AllocatorKind::Path(path) => return Ok(Some(path.clone())),
        AllocatorKind::Jemalloc => "jemalloc",
        AllocatorKind::Mimalloc => "mimalloc",
        AllocatorKind::Tcmalloc => "tcmalloc",
    };
    let known = KNOWN
        .iter()
        .find(|known| known.name == name)
        .expect("every kind has a row");
    find(known, dir)
        .map(Some)
        .ok_or_else(|| LaunchError::AllocatorMissing {
            name: known.name,
            files: known.files.join(" or "),
            searched: dir
                .map(|dir| dir.display().to_string())
                .into_iter()
                .chain(DIRECTORIES.iter().map(ToString::to_string))
                .collect::<Vec<_>>()
                .join(", "),
            install: how_to_install(&[known.name]),
        })
}
