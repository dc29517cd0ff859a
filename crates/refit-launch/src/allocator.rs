//! Allocators as the distribution installs them. Found, never shipped.

use std::path::{Path, PathBuf};

use refit_knobs::{Allocator, AllocatorKind};

use crate::LaunchError;
use crate::arch::LIBRARIES;

/// One allocator that refit knows by name.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The setting's word.
    pub name: &'static str,
    /// File names, the preferred first.
    pub files: &'static [&'static str],
    /// The Debian package.
    pub package: &'static str,
}

/// Every allocator that can be named, but for glibc's own.
pub const KNOWN: [Known; 3] = [
    Known {
        name: "jemalloc",
        files: &["libjemalloc.so.2"],
        package: "libjemalloc2",
    },
    Known {
        name: "mimalloc",
        files: &["libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"],
        package: "libmimalloc2.0",
    },
    Known {
        name: "tcmalloc",
        files: &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
        package: "libtcmalloc-minimal4",
    },
];

/// Where the system's libraries lie.
pub const DIRECTORIES: [&str; 5] = [
    LIBRARIES[0],
    LIBRARIES[1],
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];

/// The path of an allocator's library; `dir` is searched first.
#[must_use]
pub fn find(known: &Known, dir: Option<&Path>) -> Option<PathBuf> {
    dir.into_iter()
        .chain(DIRECTORIES.iter().map(Path::new))
        .flat_map(|dir| known.files.iter().map(move |file| dir.join(file)))
        .find(|path| path.exists())
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
            file: known.files[0],
            searched: dir
                .map(|dir| dir.display().to_string())
                .into_iter()
                .chain(DIRECTORIES.iter().map(ToString::to_string))
                .collect::<Vec<_>>()
                .join(", "),
            package: known.package,
        })
}
