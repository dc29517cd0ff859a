//! What of a program can be reached, told from its file before it runs.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use refit_launch::allocator::DIRECTORIES;
use refit_launch::own_syscalls::has_own_syscalls;
use refit_launch::seccomp::{Right, kernel_suffices, right};
pub use refit_launch::target::{Kind, Target, find_in_path};
use refit_meter::ElfFacts;

/// What refit can do beneath a program.
#[derive(Clone, Debug)]
pub struct Reachability {
    /// The file that runs.
    pub target: Target,
    /// Its sync calls.
    pub syncs: Syncs,
    /// Its allocations.
    pub malloc: Malloc,
    /// The sync calls that the executable itself imports.
    pub sync_imports: Vec<String>,
    /// It makes system calls by instructions of its own.
    pub has_own_syscalls: bool,
    /// A filter may be put beneath it where it is the first program.
    pub takes_filter: bool,
}

/// By what a program's sync calls are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncs {
    /// By the preload.
    Preload,
    /// By a seccomp filter, since the preload cannot, for this reason.
    Filter(&'static str),
    /// By nothing that this user may do.
    Unreached(&'static str),
    /// The file cannot be read, or is not a program.
    Unknown,
}

/// Who serves a program's allocations when another allocator is preloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Malloc {
    /// That allocator.
    Swapped,
    /// That allocator; but where none is preloaded, this library that the
    /// program links, and not the C library.
    Linked(PathBuf),
    /// The program itself, whatever is preloaded.
    OwnExport,
    /// musl: allocators are built for glibc.
    Musl,
    /// The same as without refit: nothing can be preloaded.
    Unreached,
}

impl Reachability {
    /// Of the program that an exec of this file would run, for this user.
    #[must_use]
    pub fn of(path: &Path) -> Reachability {
        let target = Target::look(path);
        let elf = ElfFacts::of(&target.path).unwrap_or_default();
        let syncs = match (target.reason, target.kind) {
            (_, Kind::Unknown) => Syncs::Unknown,
            (None, _) => Syncs::Preload,
            (Some(reason), _) if filter_reaches(reason) => Syncs::Filter(reason),
            (Some(reason), _) => Syncs::Unreached(reason),
        };
        let malloc = match syncs {
            Syncs::Preload if elf.exports_malloc => Malloc::OwnExport,
            Syncs::Preload if target.kind == Kind::Musl => Malloc::Musl,
            Syncs::Preload => {
                linked_allocator(&target.path, &elf).map_or(Malloc::Swapped, Malloc::Linked)
            }
            _ => Malloc::Unreached,
        };
        Reachability {
            has_own_syscalls: target.own_calls || has_own_syscalls(&target.path),
            takes_filter: filter_reaches(target.reason.unwrap_or_default()),
            syncs,
            malloc,
            sync_imports: elf.sync_imports,
            target,
        }
    }

    /// Whether its sync calls can be swapped.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        matches!(self.syncs, Syncs::Preload | Syncs::Filter(_))
    }
}

/// Whether this user may put a filter beneath what the preload cannot reach for
/// this reason. no_new_privs, where that gives the right, takes the privilege of a
/// privileged program, which then is another program.
fn filter_reaches(reason: &str) -> bool {
    let is_privileged = ["setuid", "setgid", "file capabilities"].contains(&reason);
    kernel_suffices()
        && match right() {
            Right::Capability => true,
            Right::NoNewPrivs => !is_privileged,
            Right::None => false,
        }
}

/// The library whose malloc comes before the C library's: the first one that
/// exports it, in the order in which ld.so looks (breadth first, ld.so(8)).
fn linked_allocator(program: &Path, elf: &ElfFacts) -> Option<PathBuf> {
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(program.to_owned(), elf.clone())]);
    while let Some((file, elf)) = queue.pop_front() {
        for name in &elf.needed {
            if name.starts_with("libc.") {
                return None;
            }
            if !seen.insert(name.clone()) {
                continue;
            }
            let Some(path) = library(name, &file, &elf.library_path) else {
                continue;
            };
            let Ok(facts) = ElfFacts::of(&path) else {
                continue;
            };
            if facts.exports_malloc {
                return Some(path);
            }
            queue.push_back((path, facts));
        }
    }
    None
}

fn library(name: &str, needed_by: &Path, library_path: &[String]) -> Option<PathBuf> {
    let origin = needed_by.parent().unwrap_or(Path::new("/"));
    let own = library_path.iter().map(|directory| {
        let origin = origin.to_string_lossy();
        PathBuf::from(
            directory
                .replace("${ORIGIN}", &origin)
                .replace("$ORIGIN", &origin),
        )
    });
    own.chain(DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_shell_is_reached_and_its_malloc_is_the_c_librarys() {
        let shell = Reachability::of(Path::new("/bin/sh"));
        assert_eq!(shell.syncs, Syncs::Preload);
        assert_eq!(shell.malloc, Malloc::Swapped);
    }

    #[test]
    fn of_a_file_that_is_no_program_nothing_is_known() {
        let passwd = Reachability::of(Path::new("/etc/passwd"));
        assert_eq!(passwd.syncs, Syncs::Unknown);
        assert_eq!(passwd.malloc, Malloc::Unreached);
    }

    #[test]
    fn a_librarys_own_directories_come_first() {
        let directory = tempfile::tempdir().expect("a directory");
        let library_of = |path: &[String]| {
            let program = directory.path().join("program");
            library("libc.so.6", &program, path)
        };
        fs::write(directory.path().join("libc.so.6"), "").expect("a file");
        let own = library_of(&["$ORIGIN".to_owned()]).expect("it is there");
        assert_eq!(own, directory.path().join("libc.so.6"));
        assert_ne!(library_of(&[]).expect("the system's"), own);
    }
}
