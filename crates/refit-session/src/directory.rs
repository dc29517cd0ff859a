//! The session directory: where the program finds its policy and leaves its
//! counters. On tmpfs, under an unguessable name.

use std::cell::Cell;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, StatVfsMountFlags, flock};
use rustix::process::geteuid;

use crate::leader::Leader;
use crate::names::OwnName;
use crate::policy::Policy;

const TMPFS_MAGIC: i64 = 0x0102_1994; // statfs(2)
/// Where sessions are when no directory of this user's own is on tmpfs. Everybody
/// may list it. A small chroot may have no /dev/shm: its /tmp mostly is on a disk, which
/// `refit doctor` says.
fn shared() -> &'static Path {
    let places = ["/dev/shm", "/tmp"].map(Path::new);
    places
        .into_iter()
        .find(|place| place.is_dir())
        .unwrap_or(places[0])
}

pub(crate) const NAME: OwnName = OwnName {
    prefix: "refit-",
    bytes: 16,
};

/// Not that of a session, so that nobody takes one for the other.
const NAME_OF_IMAGES: OwnName = OwnName {
    prefix: "refit-images-",
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

/// The same, and it is not mounted read-only, as /run often is in a sandbox
/// (statfs(2): `f_flags` has what the mount has, since Linux 2.6.36).
fn is_writable_tmpfs(path: &Path) -> bool {
    let read_only = StatVfsMountFlags::RDONLY.bits();
    rustix::fs::statfs(path)
        .is_ok_and(|fs| fs.f_type == TMPFS_MAGIC && fs.f_flags.cast_unsigned() & read_only == 0)
}

/// The directory that holds this user's sessions. As root never the runtime
/// directory of a login: programs that drop their privileges could not reach it.
#[must_use]
pub fn base() -> PathBuf {
    let uid = geteuid();
    if uid.is_root() {
        if is_writable_tmpfs(Path::new("/run")) {
            return "/run/refit".into();
        }
        return shared_own();
    } else if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        let ours = fs::metadata(&dir)
            .is_ok_and(|meta| meta.uid() == uid.as_raw() && meta.mode() & 0o077 == 0);
        if dir.is_absolute() && ours && is_writable_tmpfs(&dir) {
            return dir.join("refit");
        }
    }
    shared().into()
}

/// Root's own directory where everybody may write. Anybody may have made something of that name first: then
/// there is none.
fn shared_own() -> PathBuf {
    let own = shared().join("refit");
    match fs::symlink_metadata(&own) {
        Ok(about) if !about.is_dir() || about.uid() != 0 => shared().into(),
        _ => own,
    }
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
        if base != shared() {
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
        if let Some(leader) = Leader::of(pid) {
            let _ = (&self.lock).write_all(format!("{leader}\n").as_bytes());
        }
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
        let images = path.join(IMAGES);
        let place = match root && !path.starts_with(shared()) && is_writable_tmpfs(shared()) {
            true => linked(&images)?,
            false => images,
        };
        DirBuilder::new().mode(0o700).create(&place)?;
        set(&place, if root { 0o1733 } else { 0o700 })?;
    }
    Ok(lock)
}

/// Where processes leave what they count.
pub(crate) const IMAGES: &str = "images";

/// Makes a link in the session to a place where every user of the machine may write: a program that gave up root's rights
/// makes files there as well, of any size, and may not fill root's /run. The link comes first, so that by it all is found
/// and removed again.
fn linked(images: &Path) -> io::Result<PathBuf> {
    let base = shared_own();
    if base != shared() {
        make_base(&base, 0o711)?;
    }
    let place = base.join(NAME_OF_IMAGES.make()?);
    symlink(&place, images)?;
    Ok(place)
}

/// Bounded and flat: whatever else a program put there stays, and is tried
/// again by the next run.
pub(crate) fn remove_dir(path: &Path) {
    let images = path.join(IMAGES);
    let place = fs::read_link(&images).unwrap_or(images);
    for dir in [place, path.to_owned()] {
        if let Ok(entries) = fs::read_dir(&dir) {
            for entry in entries.flatten() {
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(&dir);
    }
}
