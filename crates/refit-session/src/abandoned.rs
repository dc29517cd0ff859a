//! Sessions that nobody uses any more, and their removal.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use crate::directory::{IMAGES, NAME, base, remove_dir};
use crate::image_files::{image_files, open_image};
use crate::leader::Leader;
use crate::openers::open_own;
use crate::sys::lease::{Holders, is_held};

/// Removes this user's sessions that no refit watches and no process uses: those
/// of a killed refit, or of a daemon that has ended since.
pub fn remove_abandoned() {
    let Ok(entries) = fs::read_dir(base()) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_session = entry
            .file_name()
            .to_str()
            .is_some_and(|name| NAME.is_own(name));
        let ours = fs::symlink_metadata(&path)
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == geteuid().as_raw());
        if is_session && ours {
            remove_if_abandoned(&path);
        }
    }
}

fn remove_if_abandoned(path: &Path) {
    let Some(_turn) = turn(path) else {
        return;
    };
    if is_abandoned(path) && !is_in_use(path) {
        remove_dir(path);
    }
}

/// How long to wait for another refit that examines the same session.
const LONGEST_TURN: Duration = Duration::from_secs(1);

/// A lock for the one refit that examines a session. Of two at once each would take
/// the other for a user of the session, since both open its files. `None` if the
/// session is gone, or the other one takes too long; a later run examines it again.
fn turn(path: &Path) -> Option<File> {
    let directory = open_own(path)?;
    let began = Instant::now();
    while flock(&directory, FlockOperation::NonBlockingLockExclusive).is_err() {
        if began.elapsed() > LONGEST_TURN {
            return None;
        }
        sleep(Duration::from_millis(1));
    }
    Some(directory)
}

/// Whether any process still maps a file of the session at `path`.
fn is_in_use(path: &Path) -> bool {
    let held = |file: &Path, by| open_own(file).is_some_and(|file| is_held(&file, by));
    held(&path.join("policy"), Holders::Anybody)
        || image_files(&path.join(IMAGES)).any(|image| {
            open_image(&image).is_some_and(|(file, _)| is_held(&file, Holders::Writers))
        })
}

fn is_abandoned(path: &Path) -> bool {
    // Without a lock file, or with an empty one, its maker is at work or has died: age decides.
    let is_old = || {
        fs::metadata(path)
            .and_then(|meta| meta.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() > 60))
    };
    let Some(lock) = open_own(&path.join("lock")) else {
        return is_old();
    };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    let noted = io::read_to_string(&lock).unwrap_or_default();
    Leader::parse(&noted).map_or_else(is_old, |leader| leader.has_ended())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pid_namespace::namespace_of;
    use crate::sys::lease::no_other_starts;

    #[test]
    fn one_that_looks_does_not_keep_another_one_from_removing() {
        let _alone = no_other_starts();
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = directory.path().join("session");
        fs::create_dir(&path).unwrap();
        let namespace = namespace_of("self").unwrap();
        // No process has this number (PID_MAX_LIMIT, include/linux/threads.h).
        let dead = format!("{} {namespace}\n", i32::MAX);
        fs::write(path.join("lock"), dead).unwrap();
        fs::write(path.join("policy"), "").unwrap();
        // What another refit holds while it looks.
        let turn = turn(&path).unwrap();
        let lock = File::open(path.join("lock")).unwrap();
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        let policy = File::open(path.join("policy")).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let path = &path;
            scope.spawn(move || {
                tell.send(rustix::thread::gettid()).unwrap();
                remove_if_abandoned(path);
            });
            // It sleeps only while it waits for its turn.
            let thread = told.recv().unwrap().as_raw_nonzero();
            let stat = format!("/proc/self/task/{thread}/stat");
            while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") S ")) {
                std::thread::yield_now();
            }
            drop((policy, lock));
            drop(turn);
        });
        assert!(!path.exists());
        // One that takes too long is not waited for.
        fs::create_dir(&path).unwrap();
        let _held = super::turn(&path).unwrap();
        remove_if_abandoned(&path);
        assert!(path.exists());
    }
}
