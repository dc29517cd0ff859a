//! Which allocator a library is.

use std::path::Path;

use refit_knobs::{AllocatorKind, NamedAllocator};

/// Whether the object that serves malloc is this allocator.
#[must_use]
pub fn is_allocator(kind: &AllocatorKind, object: &str) -> bool {
    let name = object.rsplit('/').next().unwrap_or(object);
    match kind {
        AllocatorKind::Named(named) => NamedAllocator::of_file(name) == Some(named),
        AllocatorKind::Path(path) => {
            let real = |path: &Path| path.canonicalize().ok();
            path == Path::new(object)
                || real(path).is_some_and(|path| real(Path::new(object)) == Some(path))
        }
    }
}
