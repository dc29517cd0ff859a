//! The files that processes leave in a session, opened so that no other user misleads.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::heap::file::HEAP_SIZE;
use crate::image::IMAGE_SIZE;

/// Image files of one user beyond this number are not read: only a program that works
/// against its own report makes as many.
const MOST_IMAGES: usize = 100_000;

/// Opens a file or directory of this user. Where another user can write, the name
/// may be a link, or a pipe that an open would wait for: `None`.
#[must_use]
pub fn open_own(path: &Path) -> Option<File> {
    let is_own =
        |meta: &fs::Metadata| (meta.is_file() || meta.is_dir()) && meta.uid() == geteuid().as_raw();
    // Before as well: opening a device can act on it.
    if !fs::symlink_metadata(path).is_ok_and(|meta| is_own(&meta)) {
        return None;
    }
    let mut options = File::options();
    options.read(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    file.metadata()
        .is_ok_and(|meta| is_own(&meta))
        .then_some(file)
}

/// Opens a report of a process, and returns its owner. Links and pipes that another user may
/// have put there are not followed.
pub(crate) fn open_image(path: &Path) -> Option<(File, u32)> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
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
