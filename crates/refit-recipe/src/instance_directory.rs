//! Where the instances of a comparison lie: one directory on a disk, and one on tmpfs. All
//! instances stay until the comparison has ended, since deleting them would slow the next run.
//! The next refit cleans up after one that was killed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_run::tree::{DEATH, PROC, kill_cgroup};
use refit_run::{OwnName, Tree, open_own, uses_directory};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::error::InstanceError;
use crate::instance::{Instance, InstanceOptions, Location, remove};
use crate::recipe::Recipe;
use crate::room::Room;
use crate::user::find_user;

/// Where instances lie unless the user names another directory: a disk on most machines.
pub const DEFAULT_BASE: &str = "/var/tmp";
pub(crate) const TMPFS: &str = "/dev/shm";
const NAME: OwnName = OwnName {
    prefix: "refit-lab-",
    bytes: 6,
};

/// A directory without a lock is at most so old while it is made, which takes microseconds; a
/// slower maker reports that it is gone.
const IN_THE_MAKING: Duration = Duration::from_secs(60);
/// One on tmpfs whose lock is not below this base was last changed so long ago at most, while it
/// is in use.
const ELSEWHERE: Duration = Duration::from_secs(24 * 3600);

/// The directories of one comparison.
pub struct InstanceDirectory {
    /// On a disk; removed at the end.
    pub path: PathBuf,
    pub(crate) tmpfs: PathBuf,
    _lock: File,
    /// The processes of its instances.
    pub tree: Rc<Tree>,
    /// As the user named the directory around it.
    base: PathBuf,
    made: usize,
    /// Why its instances have not all that they should have of their own.
    pub shares: Option<String>,
    /// Left last.
    _room: Option<Room>,
}

fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Whatever the umask: the recipe's user has to enter. Nobody else may: who reaches a server's socket may often do all
/// that its user may, and what is printed about somebody's data lies there too.
fn open_to_service(path: &Path, recipe: &Recipe) -> io::Result<()> {
    let service = &recipe.file.service;
    let user = service.user.as_deref().filter(|_| geteuid().is_root());
    if let Some(user) = user.and_then(find_user) {
        chown(path, None, Some(user.gid))?;
    }
    let mode = if service.others_enter { 0o711 } else { 0o710 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The file gets its name when the lock is held: without, the directory would seem abandoned.
fn lock(path: &Path) -> io::Result<File> {
    let unheld = path.join("unheld");
    let lock = File::create_new(&unheld)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(unheld, path.join("lock"))?;
    Ok(lock)
}

impl InstanceDirectory {
    /// Makes both directories and copies the recipe's folder there. From here on this process is in the room of the
    /// recipe ([`Room`]).
    ///
    /// # Errors
    /// The kernel's.
    pub fn create(named: &Path, recipe: &Recipe) -> io::Result<InstanceDirectory> {
        let name = NAME.make()?;
        let base = named.canonicalize()?;
        let path = base.join(&name);
        let tmpfs = Path::new(TMPFS).join(&name);
        let lock = make(&path).and_then(|()| lock(&path));
        let lock = lock.and_then(|lock| make(&tmpfs).map(|()| lock));
        let lock = lock.inspect_err(|_| drop(remove(&path)))?;
        let (room, shares) = match Room::enter(&recipe.file, &path) {
            Ok(room) => (room, None),
            Err(why) => (None, Some(why)),
        };
        let directory = InstanceDirectory {
            tree: Rc::new(Tree::new(&name)),
            path,
            tmpfs,
            base: named.to_owned(),
            _lock: lock,
            made: 0,
            shares,
            _room: room,
        };
        for path in [&directory.path, &directory.tmpfs] {
            open_to_service(path, recipe)?;
        }
        recipe.folder.write_for_services(&directory.recipe())?;
        directory.record(recipe.name())?;
        Ok(directory)
    }

    /// `$REFIT_RECIPE`.
    pub fn recipe(&self) -> PathBuf {
        self.path.join("recipe")
    }

    /// Bytes that are free there.
    pub fn free_bytes(&self) -> u64 {
        rustix::fs::statvfs(&self.path).map_or(0, |fs| fs.f_bavail * fs.f_frsize)
    }

    /// A new instance.
    ///
    /// # Errors
    /// [`InstanceError::Io`].
    pub fn instance(&mut self, recipe: &Recipe, brief: bool) -> Result<Instance, InstanceError> {
        let number = self.made.to_string();
        self.made += 1;
        let location = Location {
            dir: self.path.join(&number),
            tmpfs: self.tmpfs.join(&number),
            recipe: self.recipe(),
            output: self.path.clone(),
            base: self.base.clone(),
        };
        let options = InstanceOptions {
            location,
            tree: Rc::clone(&self.tree),
            brief,
            env: Vec::new(),
        };
        Instance::create(recipe, options)
    }
}

impl Drop for InstanceDirectory {
    fn drop(&mut self) {
        self.tree.kill_all();
        // What cannot be removed stays, and the next refit tries again.
        let _ = remove(&self.tmpfs);
        let _ = remove_with_lock(&self.path);
    }
}

/// Removes the instances of refits of this user that were killed, and kills their processes.
pub fn remove_abandoned_instances(base: &Path) {
    // The lock of both lies below `base`, and goes with it: last.
    for dir in [Path::new(TMPFS), base] {
        for (name, path) in own_directories(dir) {
            let main = if dir == base {
                path.clone()
            } else {
                base.join(&name)
            };
            if is_abandoned(&main, &path) {
                kill_cgroup(&name);
                kill_users(&path);
                let _ = remove_with_lock(&path);
            }
        }
    }
}

/// Name and path of each directory in `dir` that a comparison of this user made.
pub(crate) fn own_directories(dir: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let path = entry.path();
        let name = entry.file_name().into_string().ok()?;
        let is_ours = fs::symlink_metadata(&path)
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == geteuid().as_raw());
        (NAME.is_own(&name) && is_ours).then_some((name, path))
    })
}

/// The lock goes last: without it what is left would seem to be in the making, and stay.
fn remove_with_lock(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        } else if entry.file_name() != "lock" {
            fs::remove_file(entry.path())?;
        }
    }
    remove(path)
}

/// Kills the users of a directory and waits for their end: they could write what is being removed.
fn kill_users(path: &Path) {
    let began = Instant::now();
    loop {
        let users = uses_directory(Path::new(PROC), path).into_iter();
        let users = users.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        // There is no end to wait for where a process ended meanwhile or is not ours.
        let left = users.filter(|pid| kill_process(*pid, Signal::KILL).is_ok());
        if left.count() == 0 || began.elapsed() > DEATH {
            return;
        }
        sleep(Duration::from_millis(2));
    }
}

/// Whether no process holds its lock. A directory without a lock file is abandoned when it is old: the
/// refit that made it may be about to write that file, may have died before it did, or has the lock in
/// another directory (`--dir`).
pub(crate) fn is_abandoned(main: &Path, path: &Path) -> bool {
    let limit = if path == main {
        IN_THE_MAKING
    } else {
        ELSEWHERE
    };
    match open_own(&main.join("lock")) {
        // Shared: another refit that looks at the same moment holds nothing.
        Some(lock) => flock(&lock, FlockOperation::NonBlockingLockShared).is_ok(),
        None => fs::metadata(path)
            .and_then(|meta| meta.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > limit)),
    }
}
