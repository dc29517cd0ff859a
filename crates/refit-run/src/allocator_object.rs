//! Which allocator a library is.

use std::path::Path;

use refit_knobs::AllocatorKind;
use refit_launch::allocator::KNOWN;

/// Whether the object that serves malloc is this allocator.
#[must_use]
pub fn is_allocator(kind: &AllocatorKind, object: &str) -> bool {
    let name = object.rsplit('/').next().unwrap_or(object);
    let known = |wanted: &str| {
        let mut all = KNOWN.iter().filter(|known| known.name == wanted);
        // Another version is the same allocator.
        all.any(|known| name.contains(&format!("lib{}", known.name)))
    };
    match kind {
        AllocatorKind::Glibc => name.starts_with("libc.so") || name.starts_with("libc-"),
        AllocatorKind::Jemalloc => known("jemalloc"),
        AllocatorKind::Mimalloc => known("mimalloc"),
        AllocatorKind::Tcmalloc => known("tcmalloc"),
        AllocatorKind::Path(path) => {
            let real = |path: &Path| path.canonicalize().ok();
            path == Path::new(object)
                || real(path).is_some_and(|path| real(Path::new(object)) == Some(path))
        }
    }
}
