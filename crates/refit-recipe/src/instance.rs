//! A private instance of a recipe: its directories, ports, user and environment.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use refit_run::Tree;
use refit_run::tree::Part;
use rustix::process::geteuid;

use crate::command_path::command_path;
use crate::error::InstanceError;
use crate::output::Work;
use crate::ports::Port;
use crate::recipe::Recipe;
use crate::user::{User, as_user, find_user};

/// Where an instance lies. All of it is the caller's choice: the directory may be on a disk of
/// the machine, or on one that records what is written.
#[derive(Clone, Debug)]
pub struct Location {
    /// `$REFIT_DIR`, where every command starts.
    pub dir: PathBuf,
    /// `$REFIT_TMPFS`.
    pub tmpfs: PathBuf,
    /// `$REFIT_RECIPE`: a copy of the recipe's folder ([`crate::Folder::write`]).
    pub recipe: PathBuf,
    /// A directory for what the commands print, not in the instance.
    pub output: PathBuf,
    /// What a message names when the disk is full.
    pub base: PathBuf,
}

/// What an instance is made of, apart from its recipe.
pub struct InstanceOptions {
    /// Where it lies.
    pub location: Location,
    /// Its processes: all that [`Instance::run_hook`] and [`crate::Service`] start, and all that
    /// these start.
    pub tree: Rc<Tree>,
    /// As much work as a check needs (`load.brief`).
    pub brief: bool,
    /// More variables for every command.
    pub env: Vec<(String, String)>,
}

/// One private instance of a recipe.
pub struct Instance {
    /// `$REFIT_DIR`.
    pub dir: PathBuf,
    /// What the service printed.
    pub service_log: PathBuf,
    /// What the last hook printed to standard output.
    pub hook_output: PathBuf,
    pub(crate) recipe: Recipe,
    pub(crate) tree: Rc<Tree>,
    tmpfs: PathBuf,
    base: PathBuf,
    ports: Vec<(String, Port)>,
    operations: Option<u64>,
    env: Vec<(String, String)>,
    /// As root: the user that everything runs as.
    user: Option<User>,
}

impl Instance {
    /// Makes the directories, gives them to the recipe's user, and claims free ports. Nothing
    /// runs yet.
    ///
    /// # Errors
    /// [`InstanceError::Io`].
    pub fn create(recipe: &Recipe, options: InstanceOptions) -> Result<Instance, InstanceError> {
        let instance = Instance::open(recipe, options)?;
        for dir in [&instance.dir, &instance.tmpfs] {
            instance
                .make(dir)
                .map_err(InstanceError::io(format!("cannot make {}", dir.display())))?;
        }
        Ok(instance)
    }

    /// As [`Instance::create`], of an instance whose directories are there already.
    ///
    /// # Errors
    /// [`InstanceError::Io`]: no port is free.
    pub fn open(recipe: &Recipe, options: InstanceOptions) -> Result<Instance, InstanceError> {
        let Location {
            dir,
            tmpfs,
            recipe: folder,
            output,
            base,
        } = options.location;
        let names = recipe.file.service.ports.iter();
        let ports = names
            .map(|name| Ok((name.clone(), Port::free()?)))
            .collect::<io::Result<Vec<_>>>()
            .map_err(InstanceError::io("cannot claim a port"))?;
        let text = |path: &Path| path.display().to_string();
        let mut env = vec![
            ("REFIT_DIR".to_owned(), text(&dir)),
            ("REFIT_TMPFS".to_owned(), text(&tmpfs)),
            ("REFIT_RECIPE".to_owned(), text(&folder)),
            ("PATH".to_owned(), command_path()),
        ];
        let operations = match recipe.work {
            Work::Number(full, brief) => Some(if options.brief { brief } else { full }),
            Work::Read(_) => None,
        };
        if let Some(operations) = operations {
            env.push(("REFIT_OPERATIONS".to_owned(), operations.to_string()));
        }
        for (name, port) in &ports {
            let name = format!("REFIT_PORT_{}", name.to_uppercase());
            env.push((name, port.number.to_string()));
        }
        env.extend(recipe.load_variables());
        env.extend(options.env);
        let user = recipe.file.service.user.as_deref();
        let user = user.filter(|_| geteuid().is_root()).map(|name| {
            let unknown = || io::Error::other(format!("no account {name} is in /etc/passwd"));
            find_user(name).ok_or_else(unknown)
        });
        let user = user
            .transpose()
            .map_err(InstanceError::io("cannot run the service"))?;
        // Outputs of one instance lie next to each other: NAME.service, NAME.hook.
        let name = dir.file_name().unwrap_or_default().to_os_string();
        let printed = |ending: &str| {
            let mut file = name.clone();
            file.push(ending);
            output.join(file)
        };
        Ok(Instance {
            service_log: printed(".service"),
            hook_output: printed(".hook"),
            recipe: recipe.clone(),
            tree: options.tree,
            operations,
            dir,
            tmpfs,
            base,
            ports,
            env,
            user,
        })
    }

    /// A directory that the recipe's user may enter and write, whatever the umask.
    fn make(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o755).recursive(true).create(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        match self.user {
            Some(user) => chown(path, Some(user.uid), Some(user.gid)),
            None => Ok(()),
        }
    }

    /// The variables that every command of the recipe finds, the program's too.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// How many operations the load does, where the recipe has a number.
    #[must_use]
    pub fn operations(&self) -> Option<u64> {
        self.operations
    }

    /// The recipe.
    #[must_use]
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The processes of the instance.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The number of a port, by its name in the recipe.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<u16> {
        let mut ports = self.ports.iter();
        let (_, port) = ports.find(|(known, _)| known == name)?;
        Some(port.number)
    }

    /// `$REFIT_…` replaced by its value.
    #[must_use]
    pub fn expand(&self, text: &str) -> String {
        let mut names: Vec<&(String, String)> = self.env.iter().collect();
        // So that REFIT_PORT_A is not taken for the beginning of REFIT_PORT_AB.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let mut text = text.to_owned();
        for (name, value) in names {
            if name.starts_with("REFIT_") {
                text = text.replace(&format!("${name}"), value);
            }
        }
        text
    }

    /// The words that run the recipe's program: `service.start`, or the load where there is no
    /// service.
    #[must_use]
    pub fn program(&self) -> Vec<String> {
        let start = self.recipe.service.as_ref().map(|service| &service.start);
        self.words(
            Part::Service,
            start.unwrap_or(&self.recipe.file.load.command),
        )
    }

    /// The words that run a shell command as a part of the instance's processes and as the
    /// recipe's user.
    pub(crate) fn words(&self, part: Part, command: &str) -> Vec<String> {
        let mut words = self.tree.entering(part);
        words.extend(as_user(self.user, command));
        words
    }

    /// Standard streams of the program where nobody else wants them: no input, and the service's
    /// log for both outputs.
    ///
    /// # Errors
    /// [`InstanceError::Io`].
    pub fn service_files(&self) -> Result<[File; 3], InstanceError> {
        let log = create(&self.service_log)?;
        let errors = log
            .try_clone()
            .map_err(InstanceError::io("cannot duplicate a descriptor"))?;
        Ok([no_input()?, log, errors])
    }

    /// The same where the load is the program: outputs go where those of a hook go.
    ///
    /// # Errors
    /// [`InstanceError::Io`].
    pub fn load_files(&self) -> Result<[File; 3], InstanceError> {
        let [stdout, stderr] = self.hook_files()?;
        Ok([no_input()?, stdout, stderr])
    }

    /// What the last hook printed to standard error.
    #[must_use]
    pub fn hook_errors(&self) -> PathBuf {
        self.hook_output.with_extension("stderr")
    }

    pub(crate) fn hook_files(&self) -> Result<[File; 2], InstanceError> {
        Ok([create(&self.hook_output)?, create(&self.hook_errors())?])
    }

    /// What the last hook printed to standard output.
    #[must_use]
    pub fn hook_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.hook_output).unwrap_or_default()).into_owned()
    }

    /// How many operations the load has done so far; `None` where the recipe does not tell where that is found.
    #[must_use]
    pub fn operations_so_far(&self) -> Option<f64> {
        let progress = self.recipe.progress.as_ref()?;
        let text = match &progress.file {
            Some(file) => fs::read(self.dir.join(file)).unwrap_or_default(),
            None => fs::read(&self.hook_output).unwrap_or_default(),
        };
        Some(progress.last(&String::from_utf8_lossy(&text)))
    }

    /// Where the disk of the instance is full, as the user named it.
    pub(crate) fn full_disk(&self) -> Option<&Path> {
        /// A disk with less room is full.
        const FULL_BYTES: u64 = 64 << 10;
        let free = rustix::fs::statvfs(&self.dir).map_or(0, |fs| fs.f_bavail * fs.f_frsize);
        (free < FULL_BYTES).then_some(&*self.base)
    }

    /// Removes what lies on tmpfs, which is memory: it is freed at the end of its run.
    pub fn free_tmpfs(&self) {
        let _ = remove(&self.tmpfs);
    }
}

/// Removes a tree, whatever the modes in it are.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    open_up(path)?;
    fs::remove_dir_all(path)
}

/// Makes every directory of a tree writable for its owner: only root removes what lies in a
/// directory without write permission.
///
/// # Errors
/// The kernel's.
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

fn create(path: &Path) -> Result<File, InstanceError> {
    File::create(path).map_err(InstanceError::io(format!(
        "cannot write {}",
        path.display()
    )))
}

fn no_input() -> Result<File, InstanceError> {
    File::open("/dev/null").map_err(InstanceError::io("cannot open /dev/null"))
}
