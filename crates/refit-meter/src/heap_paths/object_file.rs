//! The file of an object that a process has mapped: how its functions are unwound, and their names.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::elf::STT_FUNC;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadCacheRange, SectionIndex};
use object::{Endianness, Object, ObjectSegment};
use refit_session::{open_regular, printable};

use super::function_name::function_name;
use crate::mappings::Mapping;

/// Of all files of a process together. What is beyond is passed over.
pub const MOST_BYTES: u64 = 1 << 30;
/// Longer names are cut off.
const MOST_NAME_BYTES: usize = 1 << 16;

/// Only what is asked for is read: most of a large file is code.
type Elf<'data, 'file> = ElfFile64<'data, Endianness, ReadCacheRange<'data, &'file File>>;

/// One mapping of code.
pub struct ObjectFile {
    /// Its addresses in the process.
    pub range: Range<u64>,
    /// The name of the file.
    pub name: String,
    /// Callers of its functions can be found.
    pub is_unwound: bool,
    /// What is added to an address of the file.
    bias: u64,
    module: Option<Module<Vec<u8>>>,
    /// Of all functions, by address.
    functions: Vec<Function>,
    /// Their names: the string tables of the file.
    names: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Function {
    address: u64,
    /// Or 0.
    size: u64,
    /// Where its name begins.
    name: usize,
}

impl ObjectFile {
    /// From a line of /proc/PID/maps; `None` where it is none. What is read of its file is taken from `budget`.
    pub fn of_line(line: &[u8], budget: &mut u64) -> Option<ObjectFile> {
        let mapping = Mapping::parse(line)?;
        let name = mapping.name.file_name().unwrap_or(mapping.name.as_os_str());
        let mut object = ObjectFile {
            range: mapping.start..mapping.end,
            name: printable(&name.to_string_lossy()),
            is_unwound: false,
            bias: mapping.start,
            module: None,
            functions: Vec::new(),
            names: Vec::new(),
        };
        if let Some((file, size)) = file(&mapping, budget) {
            let parts = ReadCache::new(&file);
            if let Ok(elf) = Elf::parse(parts.range(0, size)) {
                let content = |range| content(range, &file, size);
                object.read(&elf, &content, offset(line)?);
            }
        }
        Some(object)
    }

    fn read(
        &mut self,
        elf: &Elf<'_, '_>,
        content: &impl Fn((u64, u64)) -> Option<Vec<u8>>,
        offset: u64,
    ) {
        let segment = elf.segments().find(|segment| {
            let (at, size) = segment.file_range();
            // Mappings begin at pages, segments anywhere.
            at & !4095 <= offset && offset < at.saturating_add(size)
        });
        let Some(segment) = segment else {
            return;
        };
        let in_file = segment
            .address()
            .wrapping_sub(segment.file_range().0)
            .wrapping_add(offset);
        self.bias = self.range.start.wrapping_sub(in_file);
        let (endian, table) = (elf.endian(), elf.elf_section_table());
        let content_of = |index| content(table.section(index).ok()?.file_range(endian)?);
        let Ok(names) = elf.elf_header().shstrndx(endian, elf.data()) else {
            return;
        };
        let names = content_of(SectionIndex(names as usize)).unwrap_or_default();
        let find = |name: &str| {
            table.iter().find(|section| {
                name_at(&names, section.sh_name(endian) as usize) == name.as_bytes()
            })
        };
        let range = |name| {
            let section = find(name)?;
            let address = section.sh_addr(endian);
            Some(address..address.checked_add(section.sh_size(endian))?)
        };
        let section = |name| Some((range(name)?, content(find(name)?.file_range(endian)?)?));
        let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
        self.is_unwound = eh_frame.as_ref().is_some_and(|bytes| bytes.len() > 8);
        if self.is_unwound {
            let sections = ExplicitModuleSectionInfo {
                text_svma: range(".text"),
                got_svma: range(".got"),
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                ..ExplicitModuleSectionInfo::default()
            };
            self.module = Some(Module::new(
                self.name.clone(),
                self.range.clone(),
                self.bias,
                sections,
            ));
        }
        for symbols in [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()] {
            let Some(names) = content_of(symbols.string_section()) else {
                continue;
            };
            let before = self.names.len();
            let functions = symbols.iter().filter(|symbol| {
                let has_name = (symbol.st_name(endian) as usize) < names.len();
                symbol.is_definition(endian) && symbol.st_type() == STT_FUNC && has_name
            });
            self.functions.extend(functions.map(|symbol| Function {
                address: symbol.st_value(endian),
                size: symbol.st_size(endian),
                name: before + symbol.st_name(endian) as usize,
            }));
            self.names.extend(names);
            // Where the last name lacks its end.
            self.names.push(0);
        }
        let names = &self.names;
        self.functions.sort_unstable_by(|a, b| {
            let by_name = || name_at(names, a.name).cmp(name_at(names, b.name));
            (a.address, a.size)
                .cmp(&(b.address, b.size))
                .then_with(by_name)
        });
    }

    /// For the unwinder, once.
    pub fn take_module(&mut self) -> Option<Module<Vec<u8>>> {
        self.module.take()
    }

    /// The function at an address of the process, and whether that is a name.
    pub fn function(&self, address: u64) -> (String, bool) {
        let at = address.wrapping_sub(self.bias);
        let after = self.functions.partition_point(|one| one.address <= at);
        let name = after
            .checked_sub(1)
            .map(|index| self.functions[index])
            .filter(|one| one.size == 0 || at - one.address < one.size)
            .and_then(|one| str::from_utf8(name_at(&self.names, one.name)).ok());
        match name {
            Some(name) => (function_name(name), true),
            None => (format!("{}+{at:#x}", self.name), false),
        }
    }
}

/// The third field: where in the file the mapping begins.
fn offset(line: &[u8]) -> Option<u64> {
    let field = line.split(|byte| *byte == b' ').nth(2)?;
    u64::from_str_radix(str::from_utf8(field).ok()?, 16).ok()
}

/// What begins there and ends with a zero, in a string table.
fn name_at(names: &[u8], at: usize) -> &[u8] {
    let rest = names.get(at..).unwrap_or_default();
    let rest = &rest[..rest.len().min(MOST_NAME_BYTES)];
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// So many bytes of a file, from an offset on.
fn content((at, bytes): (u64, u64), mut file: &File, file_size: u64) -> Option<Vec<u8>> {
    if at.checked_add(bytes)? > file_size {
        return None;
    }
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut content = Vec::new();
    file.take(bytes).read_to_end(&mut content).ok()?;
    (content.len() as u64 == bytes).then_some(content)
}

/// The same file as was mapped, and its size: another one may have its name by now.
fn file(mapping: &Mapping, budget: &mut u64) -> Option<(File, u64)> {
    if !mapping.is_file() || !mapping.name.is_absolute() {
        return None;
    }
    let file = open_regular(&mapping.name).ok()?;
    let about = file.metadata().ok()?;
    if about.ino() != mapping.file.1 || about.len() > *budget {
        return None;
    }
    *budget -= about.len();
    Some((file, about.len()))
}
