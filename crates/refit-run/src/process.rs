//! What of a running process can be told from outside: who serves malloc in each object that it has loaded, which of
//! its variables lead nowhere, its huge pages, and what refit could swap at its next start.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use refit_launch::thp::{SystemMode, system_mode};
pub use refit_meter::{Life, NotLoaded, ProcessFacts};
use refit_meter::{loaded_objects, process_facts, process_name};

pub use crate::process_variables::{Effect, Variable};
use crate::process_variables::{Loading, variables};
use crate::reachability::Reachability;
pub use crate::serves_malloc::{Server, Serving};
use crate::serves_malloc::{mixed, serving};

/// A running process, looked at. Nothing of it is changed, and it is not stopped.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What the kernel tells.
    pub facts: ProcessFacts,
    /// What refit could do beneath its executable; `None`: it cannot be read.
    pub reachability: Option<Reachability>,
    /// Who serves malloc in what it has loaded.
    pub serving: Result<Vec<Serving>, NotLoaded>,
    /// Objects that call functions of malloc's family in more than one library.
    pub mixed: Vec<PathBuf>,
    /// Variables about allocators and libraries; `None`: its environment cannot be read.
    pub variables: Option<Vec<Variable>>,
    /// The system's mode of transparent huge pages.
    pub thp: SystemMode,
}

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub enum NoProcess {
    /// No such number.
    #[error("there is no process {0}")]
    Gone(u32),
    /// It has ended.
    #[error(
        "process {pid} has ended and waits to be reaped by {parent}: it has no memory any more"
    )]
    Zombie {
        /// Its number.
        pid: u32,
        /// `name (pid)`.
        parent: String,
    },
    /// The kernel's own.
    #[error("process {pid} ({name}) is a thread of the kernel: it has no memory of its own")]
    Kernel {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// No process.
    #[error("{tid} is a thread of process {pid}")]
    Thread {
        /// The number.
        tid: u32,
        /// Its process.
        pid: u32,
    },
    /// /proc cannot be read.
    #[error("process {pid} cannot be read: {source}")]
    Unreadable {
        /// Its number.
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Process {
    /// Looks at a process.
    ///
    /// # Errors
    /// [`NoProcess`].
    pub fn look(pid: u32) -> Result<Process, NoProcess> {
        let proc = Path::new("/proc");
        let facts = process_facts(proc, pid).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => NoProcess::Gone(pid),
            _ => NoProcess::Unreadable { pid, source },
        })?;
        match facts.life {
            Life::Program => {}
            Life::Kernel => {
                let name = facts.name;
                return Err(NoProcess::Kernel { pid, name });
            }
            Life::ThreadOf(process) => {
                let (tid, pid) = (pid, process);
                return Err(NoProcess::Thread { tid, pid });
            }
            Life::Zombie(parent) => {
                let name = process_name(proc, parent).unwrap_or_default();
                let parent = format!("{name} ({parent})");
                return Err(NoProcess::Zombie { pid, parent });
            }
        }
        let objects = loaded_objects(proc, pid);
        let root = proc.join(pid.to_string()).join("root");
        let serving = objects.as_deref().ok().map(serving);
        let servers: Vec<PathBuf> = serving
            .iter()
            .flatten()
            .filter_map(|one| one.by.library())
            .collect();
        Ok(Process {
            pid,
            reachability: executable(&facts, pid).map(|path| Reachability::of(&path)),
            variables: facts.variables.as_deref().map(|set| {
                let loading = Loading {
                    servers: &servers,
                    objects: objects.as_deref().unwrap_or_default(),
                    is_static: matches!(objects, Err(NotLoaded::Static)),
                    is_secure: facts.is_secure == Some(true),
                    root: &root,
                };
                variables(set, &loading)
            }),
            mixed: objects.as_deref().map(mixed).unwrap_or_default(),
            serving: objects.map(|_| serving.unwrap_or_default()),
            thp: system_mode(),
            facts,
        })
    }
}

/// The path of its executable where that is still the same file, else the kernel's link to it: it may be gone, or in
/// another root.
fn executable(facts: &ProcessFacts, pid: u32) -> Option<PathBuf> {
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let own = identity(&link)?;
    let named = facts
        .executable
        .clone()
        .filter(|path| identity(path) == Some(own));
    Some(named.unwrap_or(link))
}
