//! The session directory: where the program finds its policy and leaves its
//! counters. On tmpfs, under an unguessable name.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, geteuid, test_kill_process};

use crate::heap::file::HEAP_SIZE;
use crate::image::IMAGE_SIZE;
use crate::names::OwnName;
use crate::policy::Policy;
use crate::sys::lease::{Holders, is_held};

/// Image files of one user beyond this number are not read: only a program that works
/// against its own report makes as many.
const MOST_IMAGES: usize = 100_000;
/// How long another refit that looks at the same session is waited for.
const LONGEST_TURN: Duration = Duration::from_secs(1);
const TMPFS_MAGIC: i64 = 0x0102_1994; // statfs(2)
/// Where sessions are when no directory of this user's own is on tmpfs. Everybody
/// may list it.
const SHARED: &str = "/dev/shm";
const NAME: OwnName = OwnName {
    prefix: "refit-",
    bytes: 16,
};

/// A session directory. refit holds a lock on it while it watches.
#[derive(Debug)]
pub struct Session {
    /// Absolute path; `$REFIT_SESSION` of the program.
    pub path: PathBuf,
    lock: File,
    leader: Cell<Option<u32>>,
}

/// Whether `path` lies on tmpfs.
#[must_use]
pub fn is_tmpfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC)
}

/// The directory that holds this user's sessions. As root never the runtime
/// directory of a login: programs that drop their privileges could not reach it.
#[must_use]
pub fn base() -> PathBuf {
    let uid = geteuid();
    if uid.is_root() {
        if is_tmpfs(Path::new("/run")) {
            return "/run/refit".into();
        }
        // Anybody may have made something of that name first.
        let own = Path::new(SHARED).join("refit");
        if fs::symlink_metadata(&own).map_or(true, |about| about.is_dir() && about.uid() == 0) {
            return own;
        }
    } else if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        let ours = fs::metadata(&dir)
            .is_ok_and(|meta| meta.uid() == uid.as_raw() && meta.mode() & 0o077 == 0);
        if dir.is_absolute() && ours && is_tmpfs(&dir) {
            return dir.join("refit");
        }
    }
    SHARED.into()
}

/// Makes the directory of the sessions. Its mode is set, and a wrong one repaired:
/// under a umask of 077 it would shut out what drops its privileges. Root's cannot be
/// listed: who does not know a session's name can put nothing into it.
fn make_base(base: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let about = fs::symlink_metadata(base)?;
    if !about.is_dir() || about.uid() != geteuid().as_raw() {
        let what = "it is not a directory of this user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    if about.mode() & 0o7777 != mode {
        fs::set_permissions(base, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The session directory could not be made.
    #[error("cannot make a session directory in {}: {cause}", path.display())]
    Create {
        /// Where it was to be.
        path: PathBuf,
        /// The kernel's reason.
        cause: io::Error,
    },
    /// More settings than the session page holds.
    #[error(
        "these settings do not fit into the session page (64 rules, 8 KiB of text); give fewer"
    )]
    TooManySettings,
}

fn failed(path: &Path) -> impl Fn(io::Error) -> SessionError {
    move |cause| SessionError::Create {
        path: path.to_owned(),
        cause,
    }
}

impl Session {
    /// Makes an empty session, with a place for what its processes count where they do.
    ///
    /// # Errors
    /// [`SessionError::Create`].
    pub fn create(counts: bool) -> Result<Session, SessionError> {
        let base = base();
        let failed = failed(&base);
        let root = geteuid().is_root();
        if base != Path::new(SHARED) {
            make_base(&base, if root { 0o711 } else { 0o700 }).map_err(&failed)?;
        }
        let path = base.join(NAME.make().map_err(&failed)?);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(&failed)?;
        match fill(&path, root, counts) {
            Ok(lock) => Ok(Session {
                path,
                lock,
                leader: Cell::new(None),
            }),
            // No descriptor or inode is left, for example.
            Err(cause) => {
                remove_dir(&path);
                Err(failed(cause))
            }
        }
    }

    /// Writes the policy, which the program can read and nobody else change;
    /// returns its file.
    ///
    /// # Errors
    /// [`SessionError::TooManySettings`], [`SessionError::Create`].
    pub fn write_policy(&self, policy: &Policy) -> Result<File, SessionError> {
        let bytes = policy
            .to_bytes()
            .map_err(|_| SessionError::TooManySettings)?;
        let path = self.path.join("policy");
        let failed = failed(&self.path);
        let mut file = File::create(&path).map_err(&failed)?;
        file.write_all(&bytes).map_err(&failed)?;
        let readable = fs::Permissions::from_mode(0o444);
        file.set_permissions(readable).map_err(&failed)?;
        Ok(file)
    }

    /// Notes the first process: the session is not abandoned while it lives.
    pub fn note_leader(&self, pid: u32) {
        self.leader.set(Some(pid));
        // Only the cleaning of a later run reads it; a failure delays that.
        let namespace = own_namespace().map_or(String::new(), |ino| ino.to_string());
        let _ = (&self.lock).write_all(format!("{pid} {namespace}\n").as_bytes());
    }

    /// The first process, once it was started.
    #[must_use]
    pub fn leader(&self) -> Option<u32> {
        self.leader.get()
    }

    /// Removes the directory.
    pub fn remove(self) {
        // To list a directory takes a descriptor, and all may be in use.
        drop(self.lock);
        remove_dir(&self.path);
    }
}

/// Makes what is in a session's directory; returns the lock.
fn fill(path: &Path, root: bool, counts: bool) -> io::Result<File> {
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    // Programs that drop their privileges enter, but cannot list.
    set(path, if root { 0o711 } else { 0o700 })?;
    let lock = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path.join("lock"))?;
    // Another refit may hold it for the moment that `is_abandoned` takes.
    flock(&lock, FlockOperation::LockExclusive)?;
    if counts {
        let images = path.join("images");
        DirBuilder::new().mode(0o700).create(&images)?;
        set(&images, if root { 0o1733 } else { 0o700 })?;
    }
    Ok(lock)
}

/// Bounded and flat: whatever else a program put there stays, and is tried
/// again by the next run.
fn remove_dir(path: &Path) {
    for dir in [path.join("images"), path.to_owned()] {
        if let Ok(entries) = fs::read_dir(&dir) {
            for entry in entries.flatten() {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(&dir);
    }
}

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

/// Held by the one refit that looks at a session: a second one would count as a
/// user of the files that it opens to look, for both. `None` where the session is
/// gone, or the other one takes too long; a later run looks again.
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

/// Whether any process still maps a file of the session at `path`.
fn is_in_use(path: &Path) -> bool {
    let held = |file: &Path, by| open_own(file).is_some_and(|file| is_held(&file, by));
    held(&path.join("policy"), Holders::Anybody)
        || image_files(&path.join("images")).any(|image| {
            open_image(&image).is_some_and(|(file, _)| is_held(&file, Holders::Writers))
        })
}

fn is_abandoned(path: &Path) -> bool {
    // Its maker is between two steps, or died there; age decides.
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
    let mut words = noted.split_whitespace();
    let leader = words
        .next()
        .and_then(|pid| Pid::from_raw(pid.parse().ok()?));
    let namespace = words.next().and_then(|number| number.parse().ok());
    match (leader, namespace) {
        (Some(pid), Some(namespace)) if own_namespace() == Some(namespace) => {
            test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        }
        // Its pid means nothing in this namespace.
        (Some(_), Some(namespace)) => sees_all_processes() && !lives(namespace),
        _ => is_old(),
    }
}

/// PROC_PID_INIT_INO, include/linux/proc_ns.h
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The pid namespace of a process, by its number or `self`.
fn namespace_of(process: &str) -> Option<u64> {
    let about = fs::metadata(format!("/proc/{process}/ns/pid")).ok()?;
    Some(about.ino())
}

/// That of this process, which never changes: a process can only choose one for its
/// children (setns(2)).
fn own_namespace() -> Option<u64> {
    static NUMBER: OnceLock<Option<u64>> = OnceLock::new();
    *NUMBER.get_or_init(|| namespace_of("self"))
}

/// From a namespace within another one there may be users that it does not see.
fn sees_all_processes() -> bool {
    own_namespace() == Some(FIRST_NAMESPACE)
}

/// Whether a pid namespace has a process of this user; those of others do not
/// say, and this user's sessions are not theirs.
fn lives(namespace: u64) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|pid| namespace_of(&pid) == Some(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        // Whoever takes too long is waited for no longer.
        fs::create_dir(&path).unwrap();
        let _held = super::turn(&path).unwrap();
        remove_if_abandoned(&path);
        assert!(path.exists());
    }
}
