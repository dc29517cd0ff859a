//! What of a running process can be told from outside: who serves malloc in each object that it has loaded, which of
//! its variables lead nowhere, its huge pages, and what refit could swap at its next start.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use refit_launch::thp::{SystemMode, system_mode};
use refit_meter::{Bound, LoadedObject, loaded_objects, process_facts, process_name};
pub use refit_meter::{Life, NotLoaded, ProcessFacts};

pub use crate::process_variables::{Effect, Variable};
use crate::process_variables::{Loading, variables};
use crate::reachability::Reachability;

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

/// Objects whose malloc one library serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Which.
    pub by: Server,
    /// The objects, in the loader's order.
    pub objects: Vec<PathBuf>,
}

/// Who serves malloc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// The library that comes first in the loader's order.
    First(PathBuf),
    /// Another one, past the first: as RTLD_DEEPBIND (dlopen(3)) does, or symbols that were bound when it was linked.
    Past {
        /// Which.
        library: PathBuf,
        /// The one that serves the others.
        first: PathBuf,
    },
    /// One of a namespace of its own (dlmopen(3)).
    Namespace(PathBuf),
    /// Not called yet. This one will be found, unless the object was opened with RTLD_DEEPBIND.
    NotYet(Option<PathBuf>),
    /// An address in nothing that the loader knows.
    Unknown,
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

impl Server {
    /// The library, as far as it is known.
    #[must_use]
    pub fn library(&self) -> Option<PathBuf> {
        match self {
            Server::First(library) | Server::Past { library, .. } | Server::Namespace(library) => {
                Some(library.clone())
            }
            Server::NotYet(library) => library.clone(),
            Server::Unknown => None,
        }
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

/// Who serves each object that calls malloc's family.
fn serving(objects: &[LoadedObject]) -> Vec<Serving> {
    let path = |at: usize| objects[at].path.clone();
    let first = objects
        .iter()
        .position(|one| one.namespace == 0 && one.exports_malloc);
    let mut groups: Vec<Serving> = Vec::new();
    for object in objects {
        let by_name = |name: &str| object.imports.iter().find(|import| import.function == name);
        let is_bound = |import: &&refit_meter::Import| !matches!(import.bound, Bound::NotYet(_));
        let Some(import) = by_name("malloc")
            .filter(is_bound)
            .or_else(|| object.imports.iter().find(is_bound))
            .or(object.imports.first())
        else {
            continue;
        };
        let by = match import.bound {
            Bound::To(at) if object.namespace != 0 => Server::Namespace(path(at)),
            Bound::To(at) => match first.filter(|first| *first != at) {
                Some(first) => Server::Past {
                    library: path(at),
                    first: path(first),
                },
                None => Server::First(path(at)),
            },
            Bound::NotYet(at) => Server::NotYet(at.map(path)),
            Bound::Elsewhere => Server::Unknown,
        };
        match groups.iter_mut().find(|group| group.by == by) {
            Some(group) => group.objects.push(object.path.clone()),
            None => groups.push(Serving {
                by,
                objects: vec![object.path.clone()],
            }),
        }
    }
    groups
}

/// Objects that were given functions of different libraries, so that one may free what another allocated.
fn mixed(objects: &[LoadedObject]) -> Vec<PathBuf> {
    let is_mixed = |object: &&LoadedObject| {
        let mut bound = object.imports.iter().map(|import| import.bound);
        let mut known = bound.by_ref().filter(|bound| matches!(bound, Bound::To(_)));
        let first = known.next();
        known.any(|other| Some(other) != first)
    };
    objects
        .iter()
        .filter(is_mixed)
        .map(|object| object.path.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use refit_meter::Import;

    use super::*;

    fn object(path: &str, namespace: usize, exports_malloc: bool, bound: &[Bound]) -> LoadedObject {
        let functions = ["malloc", "free", "calloc"];
        let imports = bound.iter().zip(functions).map(|(bound, function)| Import {
            function,
            bound: *bound,
        });
        LoadedObject {
            path: PathBuf::from(path),
            namespace,
            exports_malloc,
            imports: imports.collect(),
        }
    }

    #[test]
    fn objects_are_grouped_by_who_serves_them() {
        let objects = [
            object("/bin/a", 0, false, &[Bound::To(1), Bound::To(1)]),
            object("/lib/je", 0, true, &[]),
            object("/lib/c", 0, true, &[Bound::To(1), Bound::To(1)]),
            object("/lib/deep", 0, false, &[Bound::To(2), Bound::To(2)]),
            object(
                "/lib/lazy",
                0,
                false,
                &[Bound::NotYet(Some(1)), Bound::NotYet(Some(1))],
            ),
            object("/lib/odd", 0, false, &[Bound::Elsewhere]),
            object(
                "/lib/half",
                0,
                false,
                &[Bound::NotYet(Some(1)), Bound::To(1)],
            ),
            object("/lib/c", 1, true, &[Bound::To(7)]),
            object("/lib/torn", 0, false, &[Bound::To(1), Bound::To(2)]),
        ];
        let groups = serving(&objects);
        let je = PathBuf::from("/lib/je");
        let names = |group: &Serving| {
            let names = group.objects.iter().map(|path| path.display().to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(groups[0].by, Server::First(je.clone()));
        assert_eq!(names(&groups[0]), "/bin/a /lib/c /lib/half /lib/torn");
        let past = Server::Past {
            library: PathBuf::from("/lib/c"),
            first: je.clone(),
        };
        assert_eq!(
            (&groups[1].by, names(&groups[1])),
            (&past, "/lib/deep".to_owned())
        );
        assert_eq!(groups[2].by, Server::NotYet(Some(je)));
        assert_eq!(groups[3].by, Server::Unknown);
        assert_eq!(groups[4].by, Server::Namespace(PathBuf::from("/lib/c")));
        assert_eq!(mixed(&objects), [PathBuf::from("/lib/torn")]);
    }
}
