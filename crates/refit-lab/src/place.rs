//! Where a recipe's instances live: one directory for each comparison, on a
//! disk, and one on tmpfs. All instances stay until the comparison has ended
//! (deleting them would slow the next run); what a killed refit left behind is
//! cleaned by the next one.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use refit_run::{
    OwnName,
    tree::{DEATH, PROC, Tree, kill_cgroup},
    uses_directory,
};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::ports::Port;
use refit_recipe::Recipe;
use refit_recipe::find_user;

/// Where instances lie unless the user says otherwise: a disk on most machines.
pub const DEFAULT_BASE: &str = "/var/tmp";
const TMPFS: &str = "/dev/shm";
const NAME: OwnName = OwnName {
    prefix: "refit-lab-",
    bytes: 6,
};

/// The directories of one comparison.
pub struct Place {
    /// On a disk; removed at the end.
    pub path: PathBuf,
    tmpfs: PathBuf,
    _lock: File,
    /// The processes of its instances.
    pub tree: Tree,
    made: usize,
}

/// One private instance.
pub struct Instance {
    /// `$REFIT_DIR`.
    pub dir: PathBuf,
    /// `$REFIT_TMPFS`.
    pub tmpfs: PathBuf,
    /// What the service printed.
    pub service_log: PathBuf,
    /// What the load's last command printed.
    pub load_output: PathBuf,
    /// By name.
    pub ports: Vec<(String, Port)>,
}

fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(path)?;
    // Whatever the umask: servers that drop their privileges have to enter.
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Nobody sees it before it is held: it would seem abandoned.
fn lock(path: &Path) -> io::Result<File> {
    let unheld = path.join("unheld");
    let lock = File::create_new(&unheld)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(unheld, path.join("lock"))?;
    Ok(lock)
}

impl Place {
    /// Makes both directories and lays the recipe's folder out.
    pub fn create(base: &Path, recipe: &Recipe) -> io::Result<Place> {
        let name = NAME.make()?;
        let base = base.canonicalize()?;
        let path = base.join(&name);
        let tmpfs = Path::new(TMPFS).join(&name);
        let lock = make(&path).and_then(|()| lock(&path));
        let lock = lock.and_then(|lock| make(&tmpfs).map(|()| lock));
        let lock = lock.inspect_err(|_| drop(remove(&path)))?;
        let place = Place {
            tree: Tree::new(&name),
            path,
            tmpfs,
            _lock: lock,
            made: 0,
        };
        recipe.folder.write(&place.recipe())?;
        Ok(place)
    }

    /// `$REFIT_RECIPE`.
    pub fn recipe(&self) -> PathBuf {
        self.path.join("recipe")
    }

    /// Bytes that are free there.
    pub fn free_bytes(&self) -> u64 {
        rustix::fs::statvfs(&self.path).map_or(0, |fs| fs.f_bavail * fs.f_frsize)
    }

    /// An empty instance with free ports.
    pub fn instance(&mut self, recipe: &Recipe) -> io::Result<Instance> {
        let number = self.made.to_string();
        self.made += 1;
        let service = &recipe.file.service;
        let beside = |ending: &str| self.path.join(format!("{number}.{ending}"));
        let instance = Instance {
            service_log: beside("service"),
            load_output: beside("load"),
            dir: self.path.join(&number),
            tmpfs: self.tmpfs.join(&number),
            ports: service
                .ports
                .iter()
                .map(|name| Ok((name.clone(), Port::free()?)))
                .collect::<io::Result<_>>()?,
        };
        for dir in [&instance.dir, &instance.tmpfs] {
            make(dir)?;
            if let Some(user) = service.user.as_deref().filter(|_| geteuid().is_root())
                && let Some(user) = find_user(user)
            {
                chown(dir, Some(user.uid), Some(user.gid))?;
            }
        }
        Ok(instance)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.tree.kill_all();
        // What cannot be removed stays behind, and the next refit tries again.
        let _ = remove(&self.tmpfs);
        let _ = remove(&self.path);
    }
}

impl Instance {
    /// What lies on tmpfs is memory: it goes with its run.
    pub fn free_tmpfs(&self) {
        let _ = remove(&self.tmpfs);
    }
}

/// Removes a tree, whatever the modes in it are.
fn remove(path: &Path) -> io::Result<()> {
    open_up(path)?;
    fs::remove_dir_all(path)
}

/// Only root removes what lies in a directory without write permission.
pub fn open_up(directory: &Path) -> io::Result<()> {
    if !geteuid().is_root() {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open_up(&entry.path())?;
            }
        }
    }
    Ok(())
}

/// Ends and removes what killed refits of this user left behind below `base`.
pub fn remove_abandoned(base: &Path) {
    // The lock of both lies below `base`, and goes with it: last.
    for dir in [Path::new(TMPFS), base] {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_ours = fs::symlink_metadata(&path)
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == geteuid().as_raw());
            let Some(name) = name.to_str().filter(|name| NAME.is_own(name) && is_ours) else {
                continue;
            };
            let main = if dir == base {
                path.clone()
            } else {
                base.join(name)
            };
            if is_abandoned(&main, &path) {
                kill_cgroup(name);
                kill_users(&path);
                let _ = remove(&path);
            }
        }
    }
}

/// Until they have ended: they could write what is being removed.
fn kill_users(path: &Path) {
    let began = Instant::now();
    loop {
        let users = uses_directory(Path::new(PROC), path).into_iter();
        let users = users.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        // One that ended meanwhile, or is not ours, is nobody to wait for.
        let left = users.filter(|pid| kill_process(*pid, Signal::KILL).is_ok());
        if left.count() == 0 || began.elapsed() > DEATH {
            return;
        }
        sleep(Duration::from_millis(2));
    }
}

/// Nobody holds its lock. Without a lock its maker is between two steps, died
/// there, or works elsewhere (`--dir`): age decides.
fn is_abandoned(main: &Path, path: &Path) -> bool {
    match File::open(main.join("lock")) {
        // Shared: another refit that looks at the same moment holds nothing.
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockShared).is_ok(),
        Err(_) => fs::metadata(path)
            .and_then(|meta| meta.modified())
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() > 24 * 3600)),
    }
}
