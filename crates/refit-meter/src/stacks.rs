//! From the registers and the stack of a thread to functions, files and lines, outside of the process that it is of.
//!
//! Stacks are unwound by the .eh_frame of the objects, which compilers write for all code: frame pointers are not needed. An
//! object that was replaced or removed since, or that has no such section, ends a path, and is named.

pub(crate) mod function_name;
mod names;
mod object_file;
mod script;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use framehop::{FrameAddress, Unwinder};
use refit_session::printable;
use serde::{Deserialize, Serialize};

use crate::arch::{self, Cache, StackUnwinder};
use crate::mappings::Mapping;
pub use names::KernelNames;
use names::Names;
use object_file::{ObjectFile, Section, VDSO};
pub use script::with_script;

/// A stack deeper than this is cut off at its outer end.
const MOST_FRAMES: usize = 256;
/// Bytes of all files together that are opened; a file beyond them has no names and is not unwound.
const MOST_BYTES: u64 = 1 << 30;
/// Files that are kept open; one beyond them has no names and is not unwound.
const MOST_FILES: usize = 500;
/// What the C library calls is where a program begins; what is around it is the same for all.
const OUTERMOST: &str = "main";

/// A function, and where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Its name, as its language writes it. A function without a name is `object+0x…`; what ends a path before its start
    /// stands in brackets.
    pub function: String,
    /// Source file, as the debug information names it; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of that file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The compiler put it into the function that calls it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_inlined: bool,
    /// The function belongs to a program that an interpreter runs, and not to the interpreter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_script: bool,
}

impl Frame {
    pub(crate) fn of_name(function: String) -> Frame {
        Frame {
            function,
            ..Frame::default()
        }
    }

    /// `cache.c:41`, with the last part of the file's path; `None` where the line is not known.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let path = self.file.as_deref()?;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(format!("{name}:{}", self.line?))
    }
}

/// `grow (cache.c:41)`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match self.place() {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// What could not be told of the objects of some stacks.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Objects without .eh_frame, or that could not be read: no path leads through them.
    pub not_unwound: BTreeSet<String>,
    /// Objects without names for some of their functions.
    pub without_names: BTreeSet<String>,
}

/// A mapping of code in a process.
#[derive(Clone, Debug)]
pub struct MappedCode {
    /// Its addresses.
    pub range: Range<u64>,
    /// Where in the file it begins.
    pub offset: u64,
    /// Inode of the file; 0: no file.
    pub inode: u64,
    /// Path of the file, or a name in brackets.
    pub path: PathBuf,
}

impl MappedCode {
    /// What is code in the text of /proc/PID/maps.
    pub fn of_maps(maps: &[u8]) -> impl Iterator<Item = MappedCode> {
        let lines = maps.split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let mapping = Mapping::parse(line)?;
            // The third field.
            let offset = line.split(|byte| *byte == b' ').nth(2)?;
            let offset = u64::from_str_radix(str::from_utf8(offset).ok()?, 16).ok()?;
            (mapping.permissions[2] == b'x').then_some(MappedCode {
                range: mapping.start..mapping.end,
                offset,
                inode: mapping.file.1,
                path: mapping.name,
            })
        })
    }
}

/// Registers that a stack is unwound from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The instruction that is executed next.
    pub instruction: u64,
    /// Where the stack ends.
    pub stack: u64,
    /// The frame pointer, or what else is in that register.
    pub frame: u64,
    /// Where a function that called no other returns to, on machines that have such a register; 0: not known.
    pub link: u64,
}

/// An address of an object's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Its place among the objects that are known.
    object: usize,
    at: u64,
}

/// Why a trace ends before the start of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    /// Code that belongs to no file.
    UnknownCode,
    /// An object that nothing is known of the frames of.
    NotUnwound,
    /// Callers beyond the part of the stack that was kept.
    Deeper,
    /// Code of 32 bits, which is not unwound.
    Narrow,
}

/// Where a thread was and from where that was called, the innermost first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trace {
    places: Vec<Place>,
    ending: Option<Ending>,
}

impl Trace {
    /// The trace of a program of 32 bits: nothing of it is known.
    pub fn narrow() -> Trace {
        Trace {
            places: Vec::new(),
            ending: Some(Ending::Narrow),
        }
    }

    /// Cut off beyond so many functions.
    pub fn shortened(mut self, most: usize) -> Trace {
        if self.places.len() > most {
            self.places.truncate(most);
            self.ending = Some(Ending::Deeper);
        }
        self
    }
}

/// What is known of an object.
struct KnownObject {
    /// The last part of its path.
    name: String,
    /// `None`: it could not be read, or is none.
    file: Option<ObjectFile>,
}

impl KnownObject {
    fn is_unwound(&self) -> bool {
        self.file.as_ref().is_some_and(ObjectFile::is_unwound)
    }
}

/// The objects of processes, and the names of their functions: each file is read once for all processes.
pub struct Objects {
    known: Vec<KnownObject>,
    by_path: HashMap<(PathBuf, u64), usize>,
    names: Names,
    budget: u64,
}

impl Objects {
    /// None are known yet.
    #[expect(clippy::new_without_default, reason = "it holds caches of files")]
    pub fn new() -> Objects {
        Objects {
            known: Vec::new(),
            by_path: HashMap::new(),
            names: Names::new(),
            budget: MOST_BYTES,
        }
    }

    /// The object that is mapped there; `root`: where the paths of its process begin.
    fn of(&mut self, code: &MappedCode, root: &Path) -> usize {
        let key = (code.path.clone(), code.inode);
        if let Some(known) = self.by_path.get(&key) {
            return *known;
        }
        let file = match code.path.as_os_str() == VDSO {
            true => ObjectFile::vdso(),
            false => self.opened(code, root),
        };
        let name = code.path.file_name().unwrap_or(code.path.as_os_str());
        self.known.push(KnownObject {
            name: printable(&name.to_string_lossy()),
            file,
        });
        self.by_path.insert(key, self.known.len() - 1);
        self.known.len() - 1
    }

    fn opened(&mut self, code: &MappedCode, root: &Path) -> Option<ObjectFile> {
        if code.inode == 0 || !code.path.is_absolute() || self.known.len() >= MOST_FILES {
            return None;
        }
        let open = |path: &Path| ObjectFile::open(path, code.inode, self.budget);
        let below = || open(&root.join(code.path.strip_prefix("/").ok()?));
        let (file, size) = open(&code.path).or_else(below)?;
        self.budget -= size;
        Some(file)
    }

    /// The functions of a trace, the outermost first. It begins beyond the objects at its inner end whose names begin
    /// with `left_out`.
    pub fn frames(&mut self, trace: &Trace, left_out: Option<&str>, gaps: &mut Gaps) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut ending = trace.ending;
        for place in &trace.places {
            let object = &self.known[place.object];
            if frames.is_empty() && left_out.is_some_and(|name| object.name.starts_with(name)) {
                continue;
            }
            let file = object.file.as_ref();
            let named = file.map(|file| self.names.frames(&file.file, place.at));
            match named.filter(|named| !named.is_empty()) {
                Some(named) => frames.extend(named.iter().cloned()),
                None => {
                    gaps.without_names.insert(object.name.clone());
                    frames.push(Frame::of_name(format!("{}+{:#x}", object.name, place.at)));
                }
            }
            if frames.last().is_some_and(|last| last.function == OUTERMOST) {
                ending = None;
                break;
            }
        }
        let last = trace
            .places
            .last()
            .map(|last| &self.known[last.object].name);
        frames.extend(ending.map(|ending| {
            Frame::of_name(match (ending, last) {
                (Ending::NotUnwound, Some(object)) => {
                    gaps.not_unwound.insert(object.clone());
                    format!("[{object} cannot be unwound]")
                }
                (Ending::Deeper, _) => "[deeper]".to_owned(),
                (Ending::Narrow, _) => "[32-bit code]".to_owned(),
                _ => "[unknown code]".to_owned(),
            })
        }));
        frames.reverse();
        frames
    }
}

/// What is mapped of an object.
struct Object {
    range: Range<u64>,
    /// What is added to an address of the file.
    bias: u64,
    /// Its place among the objects that are known.
    known: usize,
}

/// The code of one process.
pub struct ProcessCode {
    objects: Vec<Object>,
    unwinder: StackUnwinder<Section>,
    cache: Cache,
}

impl ProcessCode {
    /// Without any.
    #[expect(clippy::new_without_default, reason = "as Objects::new")]
    pub fn new() -> ProcessCode {
        ProcessCode {
            objects: Vec::new(),
            unwinder: StackUnwinder::new(),
            cache: Cache::new(),
        }
    }

    /// Takes a mapping, in place of what was at its addresses; `root`: where the paths of the process begin.
    pub fn map(&mut self, code: &MappedCode, root: &Path, all: &mut Objects) {
        let range = &code.range;
        let unwinder = &mut self.unwinder;
        self.objects.retain(|object| {
            let is_gone = object.range.start < range.end && range.start < object.range.end;
            if is_gone {
                unwinder.remove_module(object.range.start);
            }
            !is_gone
        });
        let known = all.of(code, root);
        let KnownObject { name, file } = &all.known[known];
        let file = file.as_ref();
        let bias = file.and_then(|file| file.bias(range.start, code.offset));
        let bias = bias.unwrap_or(range.start);
        if let Some(module) = file.and_then(|file| file.module(name, range.clone(), bias)) {
            unwinder.add_module(module);
        }
        self.objects.push(Object {
            range: range.clone(),
            bias,
            known,
        });
    }

    /// Addresses of all its code.
    #[cfg(test)]
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.objects.iter().map(|object| object.range.clone())
    }

    /// Objects by which stacks are unwound.
    #[cfg(test)]
    pub fn unwound(&self, all: &Objects) -> usize {
        let known = self.objects.iter().map(|object| &all.known[object.known]);
        known.filter(|object| object.is_unwound()).count()
    }

    /// Who called whom; `stack`: what lies at the stack pointer and above.
    pub fn trace(&mut self, registers: Registers, stack: &[u8], all: &Objects) -> Trace {
        let (addresses, mut ending) = self.addresses(registers, stack);
        let mut places = Vec::new();
        for address in addresses {
            let mut objects = self.objects.iter();
            let Some(object) = objects.find(|object| object.range.contains(&address)) else {
                ending = Some(Ending::UnknownCode);
                break;
            };
            places.push(Place {
                object: object.known,
                at: address.wrapping_sub(object.bias),
            });
            if !all.known[object.known].is_unwound() {
                ending = Some(Ending::NotUnwound);
                break;
            }
        }
        Trace { places, ending }
    }

    /// Addresses of code, the innermost first, and why there are no more.
    fn addresses(&mut self, registers: Registers, stack: &[u8]) -> (Vec<u64>, Option<Ending>) {
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = address.checked_sub(registers.stack).ok_or(())?;
            let at = usize::try_from(at).map_err(|_| ())?;
            let word = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(word.try_into().map_err(|_| ())?))
        };
        let first = registers.instruction;
        let registers = arch::registers(registers);
        let mut walk = self
            .unwinder
            .iter_frames(first, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        while addresses.len() < MOST_FRAMES {
            match walk.next() {
                Ok(Some(frame)) => addresses.push(FrameAddress::address_for_lookup(frame)),
                Ok(None) => return (addresses, None),
                Err(_) => break,
            }
        }
        (addresses, Some(Ending::Deeper))
    }
}
