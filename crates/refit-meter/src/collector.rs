//! Reads the image files of a session, during the run and at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use refit_session::{CALLS, Counter, Holders, IMAGE_SIZE, Image, MOST_IMAGES, is_held, open_image};
use rustix::process::geteuid;

use crate::filter::Filter;
use crate::living::living;

/// During the run the dead are folded when there are more files than this.
const FOLD_ABOVE: usize = 64;

/// The counters of one kind of call, summed.
pub(crate) type Counters = [Counter; CALLS.len()];

/// All images of one executable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executable {
    pub processes: u64,
    pub calls: Counters,
    pub flags: u32,
    pub malloc_object: String,
    /// Processes that only the filter reached.
    pub asked: u64,
    /// Count and nanoseconds by directory.
    pub directories: BTreeMap<String, (u64, u64)>,
}

impl Executable {
    pub(crate) fn add_calls(&mut self, calls: &Counters) {
        for (sum, counter) in self.calls.iter_mut().zip(calls) {
            add_counter(sum, counter);
        }
    }
}

/// What a session's images have counted so far.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    images: PathBuf,
    /// What each rule of the policy is for, in the order of the bits.
    pub(crate) scopes: Vec<Option<String>>,
    pub(crate) executables: BTreeMap<String, Executable>,
    pub(crate) unreached: BTreeMap<(String, &'static str), u64>,
    pub(crate) unreached_lost: u64,
    /// Images that reported.
    pub(crate) reported: u64,
    /// Images that should have: the first program and what the images exec'ed.
    pub(crate) expected: u64,
    /// Processes that still use an image: pid and executable.
    pub(crate) alive: Vec<(u32, String)>,
    /// Real calls about files that nobody could tell.
    pub(crate) path_unknown: u64,
    /// Opens and writes that pass the emulated disk by.
    pub(crate) not_delayed: u64,
    /// Bit i: rule i of the policy decided a call, or named an executable.
    pub(crate) matched: u64,
    /// The seccomp filter beneath, or why there is none.
    pub(crate) filter: Option<Result<Filter, String>>,
    /// Reports of users whom no program of the tree became.
    pub(crate) foreign: u64,
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
            images: session.join("images"),
            expected: expects_first.into(),
            anybody: !expects_first,
            ..Collector::default()
        }
    }

    /// What each rule of the policy is for: those that nothing matched are said.
    pub fn set_scopes(&mut self, scopes: Vec<Option<String>>) {
        self.scopes = scopes;
    }

    /// Names a program that refit itself could not reach.
    pub fn add_unreached(&mut self, name: &str, reason: &'static str) {
        *self.unreached.entry((name.to_owned(), reason)).or_default() += 1;
    }

    /// Folds the files of the dead into the total and removes them, when there
    /// are many: a build starts thousands of programs.
    pub fn fold_dead(&mut self) {
        let files: Vec<PathBuf> = self.files().collect();
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

    /// Sets apart the files of users that nobody in the tree became: any user
    /// may write into the directory of a root's session. Whoever drops its
    /// privileges says so in its own image before it execs, and so before there
    /// is a file of the user that it became.
    fn of_the_tree(&mut self, files: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let own = |user| user == 0 || user == geteuid().as_raw();
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for path in files {
            match open_image(&path) {
                Some((_, user)) if own(user) => ours.push(path),
                Some((_, user)) => others.push((user, path)),
                None => {}
            }
        }
        if others.iter().any(|(user, _)| !self.trusts(*user)) {
            for (file, _) in ours.iter().filter_map(|path| open_image(path)) {
                read(&file).iter().for_each(|image| self.learn(image));
            }
        }
        let (known, strange): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(user, _)| self.trusts(*user));
        ours.extend(known.into_iter().map(|(_, path)| path));
        (ours, strange.into_iter().map(|(_, path)| path).collect())
    }

    fn trusts(&self, user: u32) -> bool {
        self.anybody || self.users.contains(&user)
    }

    fn learn(&mut self, image: &Image) {
        self.users.extend(&image.users);
        self.anybody |= !image.unreached.is_empty() || image.unreached_lost > 0;
    }

    /// Reads every image that is left.
    pub fn finish(&mut self) {
        let files: Vec<PathBuf> = self.files().collect();
        let (ours, strange) = self.of_the_tree(files);
        let reports = strange.iter().filter_map(|path| open_image(path));
        self.foreign = reports.filter_map(|(file, _)| read(&file)).count() as u64;
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

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.images).into_iter().flatten().flatten();
        entries.take(MOST_IMAGES).map(|entry| entry.path())
    }

    fn add(&mut self, image: Image, alive: Vec<u32>) {
        self.reported += 1;
        self.learn(&image);
        self.expected = self.expected.saturating_add(image.execs);
        self.unreached_lost = self.unreached_lost.saturating_add(image.unreached_lost);
        self.path_unknown = self.path_unknown.saturating_add(image.path_unknown);
        self.not_delayed = self.not_delayed.saturating_add(image.not_delayed);
        self.matched |= image.matched;
        for unreached in &image.unreached {
            let count = self
                .unreached
                .entry((unreached.name.clone(), unreached.reason))
                .or_default();
            *count = count.saturating_add(unreached.count);
        }
        let name = if image.executable.is_empty() {
            "?"
        } else {
            &image.executable
        };
        let executable = self.executables.entry(name.to_owned()).or_default();
        executable.processes = executable.processes.saturating_add(processes(&image));
        executable.flags |= image.flags;
        executable.malloc_object.clone_from(&image.malloc_object);
        for directory in image.directories {
            let (count, waited_ns) = executable.directories.entry(directory.path).or_default();
            *count = count.saturating_add(directory.count);
            *waited_ns = waited_ns.saturating_add(directory.waited_ns);
        }
        for slot in &image.slots {
            executable.add_calls(&slot.calls);
        }
        self.alive
            .extend(alive.into_iter().map(|pid| (pid, name.to_owned())));
    }
}

fn add_counter(sum: &mut Counter, more: &Counter) {
    sum.seen = sum.seen.saturating_add(more.seen);
    sum.suppressed = sum.suppressed.saturating_add(more.suppressed);
    sum.real = sum.real.saturating_add(more.real);
    sum.waited_ns = sum.waited_ns.saturating_add(more.waited_ns);
    sum.injected = sum.injected.saturating_add(more.injected);
}

/// A process counts once for each program that it ran: the image itself, and
/// every child that it forked and that did not exec something else.
fn processes(image: &Image) -> u64 {
    1 + image.forked.saturating_sub(image.departed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_execs_is_counted_by_its_new_image() {
        let image = Image {
            pid: 10,
            forked: 5,
            departed: 2,
            ..Image::default()
        };
        assert_eq!(processes(&image), 1 + 5 - 2);
    }

    #[test]
    fn what_another_user_put_there_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let images = dir.path().join("images");
        fs::create_dir(&images).unwrap();
        fs::write(images.join("short"), b"x").unwrap();
        fs::write(images.join("zeroes"), vec![0; IMAGE_SIZE]).unwrap();
        fs::create_dir(images.join("dir")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", images.join("link")).unwrap();
        let mut collector = Collector::new(dir.path(), true);
        collector.finish();
        assert_eq!((collector.reported, collector.expected), (0, 1));
    }

    #[test]
    fn who_opens_the_file_meanwhile_kills_nobody() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let path = file.into_temp_path();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let opened = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(File::open(&path).unwrap());
                    opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                }
            });
            // A lease that is broken by SIGIO ends this process within a few.
            while opened.load(std::sync::atomic::Ordering::Relaxed) < 20_000 {
                let _ = is_held(&File::open(&path).unwrap(), Holders::Anybody);
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn a_mapped_file_counts_as_held_and_an_unused_one_does_not() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let reader = File::open(file.path()).unwrap();
        assert!(
            is_held(&reader, Holders::Writers),
            "the writer still has it open"
        );
        let path = file.into_temp_path();
        assert!(!is_held(&reader, Holders::Writers));
        drop(path);
    }
}
