//! What a running process has loaded, and who serves malloc in each object: read from outside, while it runs, from the
//! slots that ld.so has filled. The process is not stopped and nothing of it is trusted.

pub(crate) mod image;
mod link_map;
pub(crate) mod memory;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::mappings::{Mapping, mappings};
use crate::tree::at;
use image::Image;
use link_map::{Entry, Program};
use memory::Memory;

/// malloc's family: whoever serves one of these must serve them all (malloc(3)).
pub const MALLOC_FAMILY: [&str; 8] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "malloc_usable_size",
];

/// How often a list is read again that changes while it is read.
const ATTEMPTS: usize = 20;

/// One object: the program, or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedObject {
    /// As it is mapped.
    pub path: PathBuf,
    /// 0: where the program is; others were made by dlmopen(3).
    pub namespace: usize,
    /// It exports a malloc.
    pub exports_malloc: bool,
    /// The functions of malloc's family that it calls through slots, each once, and whom that reaches.
    pub imports: Vec<Import>,
}

/// A function that an object calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// One of [`MALLOC_FAMILY`].
    pub function: &'static str,
    /// Whom a call reaches.
    pub bound: Bound,
}

/// Whom a call of an imported function reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The object at this place of the list.
    To(usize),
    /// Not called yet: ld.so will look for it then. The first object of the namespace that exports it, if any.
    NotYet(Option<usize>),
    /// An address in no object that the loader knows.
    Elsewhere,
}

/// Why nothing was read.
#[derive(Debug)]
pub enum NotLoaded {
    /// A static program: no loader works for it.
    Static,
    /// A 32-bit program, or one of another machine.
    OtherArchitecture,
    /// No memory: a kernel thread, or an ended process.
    NoMemory,
    /// The kernel refuses it (ptrace(2), PTRACE_MODE_ATTACH), or the process is gone.
    Refused(io::Error),
    /// The loader has not begun, or its list kept changing, or is not a list.
    NoList,
}

/// Everything that the process's loader has loaded, in its order.
///
/// # Errors
/// [`NotLoaded`].
pub fn loaded_objects(proc: &Path, pid: u32) -> Result<Vec<LoadedObject>, NotLoaded> {
    let auxv = fs::read(at(proc, pid).join("auxv")).map_err(NotLoaded::Refused)?;
    for _ in 0..ATTEMPTS {
        let maps = mappings(proc, pid).map_err(NotLoaded::Refused)?;
        if maps.is_empty() {
            return Err(NotLoaded::NoMemory);
        }
        let memory = Memory::open(proc, pid).map_err(NotLoaded::Refused)?;
        if !is_of_this_machine(&memory, &maps, &auxv) {
            return Err(NotLoaded::OtherArchitecture);
        }
        let program = match link_map::program(&memory, &auxv) {
            Some(Program::Static) => return Err(NotLoaded::Static),
            Some(Program::Dynamic(image)) => image,
            None => continue,
        };
        let objects = link_map::entries(&memory, &program)
            .and_then(|entries| objects(&memory, &maps, &entries));
        if let Some(objects) = objects.filter(|objects| !objects.is_empty()) {
            return Ok(objects);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(NotLoaded::NoList)
}

/// The program headers lie in a file that begins with an ELF header of this machine's class. A 32-bit process has
/// auxiliary entries of half the size (fs/binfmt_elf.c), which name no mapping.
fn is_of_this_machine(memory: &Memory, maps: &[Mapping], auxv: &[u8]) -> bool {
    let headers = crate::process_facts::auxiliary(auxv, 3);
    let holds = |map: &&Mapping| headers.is_some_and(|at| (map.start..map.end).contains(&at));
    maps.iter()
        .find(holds)
        .and_then(|map| memory.bytes(map.start, 5, 5))
        .is_some_and(|start| start == b"\x7fELF\x02")
}

/// One of them as it is looked at.
struct Seen {
    image: Image,
    mapping: Mapping,
    namespace: usize,
    start: u64,
    end: u64,
}

fn objects(memory: &Memory, maps: &[Mapping], entries: &[Entry]) -> Option<Vec<LoadedObject>> {
    let mut seen = Vec::new();
    for entry in entries {
        let holds = |map: &&Mapping| (map.start..map.end).contains(&entry.dynamic);
        let mapping = maps.iter().find(holds)?.clone();
        let image = Image::read(memory, entry.base, entry.dynamic)?;
        let (start, end) = span(maps, &mapping, entry, entries);
        seen.push(Seen {
            image,
            mapping,
            namespace: entry.namespace,
            start,
            end,
        });
    }
    let exports: Vec<[bool; MALLOC_FAMILY.len()]> = seen
        .iter()
        .map(|one| MALLOC_FAMILY.map(|function| one.image.exports(memory, function)))
        .collect();
    let slots = seen
        .iter()
        .map(|one| one.image.slots(memory, &MALLOC_FAMILY));
    let slots: Vec<Vec<image::Slot>> = slots.collect::<Option<_>>()?;
    let holder = |address: u64| {
        seen.iter()
            .position(|one| (one.start..one.end).contains(&address))
    };
    let first = |namespace: usize, function: usize| {
        (0..seen.len()).find(|at| seen[*at].namespace == namespace && exports[*at][function])
    };
    // A slot that holds an address of an object that does not define the function: an entry of a linkage table. Of the
    // object's own: it was not called yet. Of the program's: its slot says who serves it (x86-64 psABI, "Function
    // Addresses").
    let bound = |own: usize, slot: &image::Slot| {
        let mut address = slot.address;
        for _ in 0..2 {
            match holder(address) {
                None => return Bound::Elsewhere,
                Some(at) if exports[at][slot.function] => return Bound::To(at),
                Some(at) if at == own => break,
                Some(at) => match slots[at]
                    .iter()
                    .find(|other| other.function == slot.function)
                {
                    Some(other) if holder(other.address) != Some(at) => address = other.address,
                    Some(_) => break,
                    None => return Bound::To(at),
                },
            }
        }
        Bound::NotYet(first(seen[own].namespace, slot.function))
    };
    let object = |(own, one): (usize, &Seen)| LoadedObject {
        path: one.mapping.name.clone(),
        namespace: one.namespace,
        exports_malloc: exports[own][0],
        imports: imports(&slots[own], |slot| bound(own, slot)),
    };
    Some(seen.iter().enumerate().map(object).collect())
}

/// Each function once; where its slots differ, one that was bound already.
fn imports(slots: &[image::Slot], bound: impl Fn(&image::Slot) -> Bound) -> Vec<Import> {
    let mut imports: Vec<Import> = Vec::new();
    for slot in slots {
        let (function, bound) = (MALLOC_FAMILY[slot.function], bound(slot));
        match imports
            .iter_mut()
            .find(|import| import.function == function)
        {
            Some(known) if matches!(known.bound, Bound::NotYet(_)) => known.bound = bound,
            Some(_) => {}
            None => imports.push(Import { function, bound }),
        }
    }
    imports
}

/// The addresses of an object: all mappings of its file, up to where the same file was loaded again.
fn span(maps: &[Mapping], own: &Mapping, entry: &Entry, entries: &[Entry]) -> (u64, u64) {
    if !own.is_file() {
        return (own.start, own.end);
    }
    let again = entries
        .iter()
        .map(|other| other.base)
        .filter(|base| *base > entry.base)
        .min()
        .unwrap_or(u64::MAX);
    let parts = maps
        .iter()
        .filter(|map| map.file == own.file && (entry.base..again).contains(&map.start));
    parts.fold((own.start, own.end), |(start, end), map| {
        (start.min(map.start), end.max(map.end))
    })
}

#[cfg(test)]
#[path = "loaded_tests.rs"]
mod tests;
