//! Reads the image files of a session, during the run and at its end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::collected::Collected;
use crate::directory::IMAGES;
use crate::heap::file::{block_of, identity};
use crate::heap::{CountedHeap, HeapImage, HeapReport, HeapSamples, PurgeRequest};
use crate::image::{IMAGE_SIZE, Image};
use crate::image_files::{heap_files, image_files, open_image};
use crate::living::living;
use crate::sys::lease::{Holders, is_held};

/// During the run the dead are folded when there are more files than this.
const FOLD_ABOVE: usize = 64;

/// Of the dead, no more samples than this are kept: 16 KiB each.
const MOST_SAMPLES: usize = 4096;

/// What a session's images have counted so far.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    images: PathBuf,
    collected: Collected,
    heap: CountedHeap,
    /// Of those that were folded.
    samples: Vec<HeapSamples>,
    /// Users whom a program of the tree became.
    users: BTreeSet<u32>,
    /// A program that refit did not reach may have become anybody.
    anybody: bool,
}

fn read(mut file: &File) -> Option<Image> {
    let mut bytes = vec![0; IMAGE_SIZE];
    file.read_exact(&mut bytes).ok()?;
    Image::parse(&bytes)
}

impl Collector {
    /// For the session directory at `session`. `expects_first` says whether the
    /// first program should report.
    #[must_use]
    pub fn new(session: &Path, expects_first: bool) -> Collector {
        Collector {
            images: session.join(IMAGES),
            collected: Collected {
                expected: expects_first.into(),
                ..Collected::default()
            },
            anybody: !expects_first,
            ..Collector::default()
        }
    }

    /// Names a program that refit itself could not reach.
    pub fn add_unreached(&mut self, name: &str, reason: &'static str) {
        *self
            .collected
            .unreached
            .entry((name.to_owned(), reason))
            .or_default() += 1;
    }

    /// Folds the files of the dead into the total and removes them, when there
    /// are many: a build starts thousands of programs.
    pub fn fold_dead(&mut self) {
        self.fold_dead_heaps();
        let files: Vec<PathBuf> = image_files(&self.images).collect();
        if files.len() <= FOLD_ABOVE {
            return;
        }
        for path in self.of_the_tree(files).0 {
            // Its last process is gone before it is read, so nothing is lost.
            if let Some((file, _)) = open_image(&path)
                && !is_held(&file, Holders::Writers)
                && let Some(image) = read(&file)
                && fs::remove_file(&path).is_ok()
            {
                self.add(image, Vec::new());
            }
        }
    }

    fn fold_dead_heaps(&mut self) {
        let files: Vec<PathBuf> = heap_files(&self.images).collect();
        if files.len() <= FOLD_ABOVE {
            return;
        }
        for path in self.of_the_tree(files).0 {
            if let Some((file, _)) = open_image(&path)
                && !is_held(&file, Holders::Writers)
                && let Some(image) = HeapImage::read(&file)
            {
                let samples = HeapSamples::read(&file);
                if fs::remove_file(&path).is_ok() {
                    self.heap.add(image);
                    samples.into_iter().for_each(|samples| self.keep(samples));
                }
            }
        }
    }

    /// The heaps of the processes that are there now, and of those that ended and are not folded.
    pub fn heap_images(&mut self) -> Vec<HeapImage> {
        let files = heap_files(&self.images).collect();
        let ours = self.of_the_tree(files).0;
        let files = ours.iter().filter_map(|path| open_image(path));
        files
            .filter_map(|(file, _)| HeapImage::read(&file))
            .collect()
    }

    /// Asks a process for a copy; `file` is that of its image ([`HeapImage::file`]).
    ///
    /// # Errors
    /// The process has no block, or its file cannot be written.
    pub fn ask_for_purge(&mut self, file: (u64, u64), pid: u32) -> io::Result<PurgeRequest> {
        let files = heap_files(&self.images).collect();
        let ours = self.of_the_tree(files).0;
        let mut files = ours.iter().filter_map(|path| open_image(path));
        let found = files.find(|(there, _)| identity(there) == Some(file));
        let found = found.and_then(|(there, _)| Some((block_of(&there, pid)?, there)));
        let (block, there) = found.ok_or(io::ErrorKind::NotFound)?;
        PurgeRequest::new(&there, block)
    }

    fn keep(&mut self, mut samples: HeapSamples) {
        let kept: usize = self.samples.iter().map(|one| one.samples.len()).sum();
        let room = MOST_SAMPLES.saturating_sub(kept);
        let too_many = samples.samples.len().saturating_sub(room);
        samples.samples.truncate(room);
        samples.lost = samples.lost.saturating_add(too_many as u64);
        if !samples.samples.is_empty() || samples.lost > 0 {
            self.samples.push(samples);
        }
    }

    /// Where the live blocks of the processes that are there now were allocated, and of
    /// those that ended.
    #[must_use]
    pub fn heap_samples(&self) -> Vec<HeapSamples> {
        let mut all = self.clone();
        let files = heap_files(&self.images).collect();
        let ours = all.of_the_tree(files).0;
        let files = ours.iter().filter_map(|path| open_image(path));
        let there = files.filter_map(|(file, _)| HeapSamples::read(&file));
        all.samples.extend(there);
        all.samples
    }

    /// What was counted of heaps so far.
    #[must_use]
    pub fn heap(&self) -> HeapReport {
        let mut all = self.clone();
        for image in all.heap_images() {
            all.heap.add(image);
        }
        all.heap.report()
    }

    /// Separates the files of users that no process of the tree became: any user
    /// may write into the directory of a root's session. A process that drops its
    /// privileges notes the new user in its image before it execs, and so before there
    /// is a file of the user that it became.
    fn of_the_tree(&mut self, files: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for path in files {
            match open_image(&path) {
                Some((_, user)) if is_own(user) => ours.push(path),
                Some((_, user)) => others.push((user, path)),
                None => {}
            }
        }
        if others.iter().any(|(user, _)| !self.trusts(*user)) {
            self.learn_users();
        }
        let (known, strange): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(user, _)| self.trusts(*user));
        ours.extend(known.into_iter().map(|(_, path)| path));
        (ours, strange.into_iter().map(|(_, path)| path).collect())
    }

    /// Learns from the images which users the tree became: those of a trusted user tell of more.
    fn learn_users(&mut self) {
        let mut files: Vec<(File, u32)> = image_files(&self.images)
            .filter_map(|path| open_image(&path))
            .collect();
        loop {
            let (trusted, others): (Vec<_>, Vec<_>) =
                (files.into_iter()).partition(|(_, user)| is_own(*user) || self.trusts(*user));
            if trusted.is_empty() {
                return;
            }
            for (file, _) in trusted {
                read(&file).iter().for_each(|image| self.learn(image));
            }
            files = others;
        }
    }

    fn trusts(&self, user: u32) -> bool {
        self.anybody || self.users.contains(&user)
    }

    fn learn(&mut self, image: &Image) {
        self.users.extend(&image.users);
        self.anybody |= !image.unreached.is_empty() || image.unreached_lost > 0;
    }

    /// What was counted so far, in the images that were folded and in those that are
    /// there now.
    #[must_use]
    pub fn collect(&self) -> Collected {
        let mut all = self.clone();
        all.read_images();
        all.collected
    }

    fn read_images(&mut self) {
        let files: Vec<PathBuf> = image_files(&self.images).collect();
        let (ours, strange) = self.of_the_tree(files);
        let reports = strange.iter().filter_map(|path| open_image(path));
        self.collected.foreign = reports.filter_map(|(file, _)| read(&file)).count() as u64;
        for path in ours {
            if let Some((file, _)) = open_image(&path) {
                let held = is_held(&file, Holders::Writers);
                if let Some(image) = read(&file) {
                    let alive = if held {
                        living(&image, &file, &path)
                    } else {
                        Vec::new()
                    };
                    // Those that ended meanwhile may have counted on.
                    let last = (held && alive.is_empty()).then(|| read(&file)).flatten();
                    self.add(last.unwrap_or(image), alive);
                }
            }
        }
    }

    fn add(&mut self, image: Image, alive: Vec<u32>) {
        self.learn(&image);
        self.collected.add_image(image, alive);
    }
}

/// Whether the files of this user are trusted without a word of any image.
fn is_own(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_user_put_there_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let images = dir.path().join(IMAGES);
        fs::create_dir(&images).unwrap();
        fs::write(images.join("short"), b"x").unwrap();
        fs::write(images.join("zeroes"), vec![0; IMAGE_SIZE]).unwrap();
        fs::create_dir(images.join("dir")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", images.join("link")).unwrap();
        let collected = Collector::new(dir.path(), true).collect();
        assert_eq!((collected.reported, collected.expected), (0, 1));
    }
}
