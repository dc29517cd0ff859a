//! Whether a file is still in use.

use std::fs::File;
use std::os::fd::AsRawFd;

/// fcntl(2); the libc crate does not have it for every target.
const F_SETSIG: libc::c_int = 10;

/// What others may still do with a file for it to count as unused.
#[derive(Clone, Copy, Debug)]
pub enum Holders {
    /// Nobody has it open or mapped for writing.
    Writers,
    /// Nobody but us has it open or mapped at all.
    Anybody,
}

/// Whether any process still holds the file, by descriptor or by mapping. The
/// kernel grants a lease only when none does (fcntl(2), F_SETLEASE: a mapping
/// keeps its open file description, so it counts). Works across chroots and
/// pid namespaces. When the kernel will not say, the file counts as held.
pub fn is_held(file: &File, by: Holders) -> bool {
    let kind = match by {
        Holders::Writers => libc::F_RDLCK,
        Holders::Anybody => libc::F_WRLCK,
    };
    // SAFETY: the descriptor is open and the arguments are plain integers. The
    // lease is given back at once. A process that opens the file in between waits that
    // long, and the kernel notifies us by a signal (F_SETSIG), which has to be one that
    // does nothing: its default, SIGIO, kills.
    unsafe {
        if libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) != 0 {
            return true;
        }
        if libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) != 0 {
            return true;
        }
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK);
    }
    false
}

/// For a test that starts a process, which holds all descriptors of the other tests
/// until its exec; and for one in which nobody may hold a file.
#[cfg(test)]
pub fn no_other_starts() -> std::sync::MutexGuard<'static, ()> {
    static STARTS: std::sync::Mutex<()> = std::sync::Mutex::new(());
    STARTS
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let _alone = no_other_starts();
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
