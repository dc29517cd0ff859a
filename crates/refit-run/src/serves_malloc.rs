//! Who serves malloc in a process, and whether that is the allocator that was meant: one judge for what is measured,
//! for a process that is looked at, and for what is applied.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use refit_knobs::{AllocatorKind, NamedAllocator};
use refit_launch::allocator::{find, here};
use refit_meter::{Bound, LoadedObject, NotLoaded, loaded_objects};

use crate::why_not::MallocServer;

/// Objects whose malloc one library serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// The library.
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
        /// The library that serves these objects.
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

/// Whether the object that serves malloc is this allocator.
#[must_use]
pub fn is_allocator(kind: &AllocatorKind, object: &str) -> bool {
    match kind {
        AllocatorKind::Named(named) => NamedAllocator::of_file(file_name(object)) == Some(named),
        AllocatorKind::Path(path) => {
            let real = |path: &Path| path.canonicalize().ok();
            path == Path::new(object)
                || real(path).is_some_and(|path| real(Path::new(object)) == Some(path))
        }
    }
}

/// The object whose malloc is found first in a running process, as it is mapped: a library, or the program itself.
/// One that was opened with RTLD_DEEPBIND (dlopen(3)) may use another.
///
/// # Errors
/// Why it cannot be told, as a part of a sentence.
pub fn server_of(pid: u32) -> Result<PathBuf, &'static str> {
    let objects = loaded_objects(Path::new("/proc"), pid).map_err(|reason| match reason {
        NotLoaded::Static => "the program is static",
        NotLoaded::OtherArchitecture => "the program is of another architecture",
        NotLoaded::NoMemory => "the process has ended",
        NotLoaded::Refused(error) if error.kind() == ErrorKind::NotFound => "the process has ended",
        NotLoaded::Refused(_) => "the kernel refuses to tell",
        NotLoaded::NoList => "the loader is at work",
    })?;
    let first = first(&objects).ok_or("nothing that is loaded has a malloc")?;
    // One that is linked into the program and not exported is not seen from outside.
    if first != 0 && objects[0].imports.is_empty() {
        return Err("the program itself calls no library's malloc");
    }
    Ok(objects[first].path.clone())
}

/// What is told where `object` serves malloc in a program in place of the wanted allocator.
pub(crate) fn served_by(program: &str, object: &str, wanted: &AllocatorKind) -> MallocServer {
    let libc = match wanted {
        AllocatorKind::Named(named) if named.is_c_librarys() => Some(find(named, None, here)),
        _ => None,
    };
    MallocServer {
        executable: program.to_owned(),
        object: object.to_owned(),
        libc_wanted: libc.is_some(),
        libc: libc
            .and_then(Result::ok)
            .map(|path| path.display().to_string()),
    }
}

/// The place of the first object that exports a malloc, where the program is.
fn first(objects: &[LoadedObject]) -> Option<usize> {
    objects
        .iter()
        .position(|one| one.namespace == 0 && one.exports_malloc)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Who serves each object that calls malloc's family.
pub(crate) fn serving(objects: &[LoadedObject]) -> Vec<Serving> {
    let path = |at: usize| objects[at].path.clone();
    let first = first(objects);
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
pub(crate) fn mixed(objects: &[LoadedObject]) -> Vec<PathBuf> {
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
