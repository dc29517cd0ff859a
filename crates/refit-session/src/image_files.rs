//! The files that processes leave in a session, opened so that no other user misleads.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::heap::file::HEAP_SIZE;
use crate::image::IMAGE_SIZE;
use crate::openers::open_unfollowed;

/// Image files of one user beyond this number are not read: only a program that works
/// against its own report makes as many.
const MOST_IMAGES: usize = 100_000;

/// Opens a report of a process, and returns its owner. Links and pipes that another user may
/// have put there are not followed.
pub(crate) fn open_image(path: &Path) -> Option<(File, u32)> {
    let (file, meta) = open_unfollowed(path)?;
    let is_report = meta.is_file() && [IMAGE_SIZE as u64, HEAP_SIZE].contains(&meta.size());
    is_report.then(|| (file, meta.uid()))
}

/// The files in a session's `images` that may be reports. Each user has a number of
/// their own, so that nobody's files hide those of another user.
pub(crate) fn image_files(images: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    files_of_size(images, IMAGE_SIZE as u64)
}

/// The same of those that the heap library made.
pub(crate) fn heap_files(images: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    files_of_size(images, HEAP_SIZE)
}

fn files_of_size(images: &Path, size: u64) -> impl Iterator<Item = PathBuf> + use<> {
    let mut of_user: HashMap<u32, usize> = HashMap::new();
    let entries = fs::read_dir(images).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let about = entry.metadata().ok()?;
        if !about.is_file() || about.size() != size {
            return None;
        }
        let count = of_user.entry(about.uid()).or_default();
        *count += 1;
        (*count <= MOST_IMAGES).then(|| entry.path())
    })
}
