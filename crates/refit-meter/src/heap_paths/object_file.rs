//! The file of an object that a process has mapped: how its functions are unwound, and their names.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use refit_session::{open_regular, printable};

use super::function_name::function_name;
use crate::mappings::Mapping;

/// Of all files of a process together. What is beyond is passed over.
pub const MOST_BYTES: u64 = 1 << 30;

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
    /// First address, size or 0, and name of each function, by address.
    functions: Vec<(u64, u64, String)>,
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
        };
        if let Some(content) = content(&mapping, budget)
            && let Ok(elf) = ElfFile64::parse(&*content)
        {
            object.read(&elf, offset(line)?);
        }
        Some(object)
    }

    fn read(&mut self, elf: &ElfFile64, offset: u64) {
        let holds = |segment: &object::read::elf::ElfSegment64<'_, '_>| {
            let (at, size) = segment.file_range();
            // Mappings begin at pages, segments anywhere.
            at & !4095 <= offset && offset < at.saturating_add(size)
        };
        let Some(segment) = elf.segments().find(holds) else {
            return;
        };
        let in_file = segment
            .address()
            .wrapping_sub(segment.file_range().0)
            .wrapping_add(offset);
        self.bias = self.range.start.wrapping_sub(in_file);
        let section = |name| {
            let section = elf.section_by_name(name)?;
            let range = section.address()..section.address().checked_add(section.size())?;
            Some((range, section.data().ok()?.to_vec()))
        };
        let (text_svma, text) = section(".text").unzip();
        let (eh_frame_svma, eh_frame) = section(".eh_frame").unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = section(".eh_frame_hdr").unzip();
        self.is_unwound = eh_frame.as_ref().is_some_and(|bytes| bytes.len() > 8);
        if self.is_unwound {
            let sections = ExplicitModuleSectionInfo {
                text_svma,
                text,
                got_svma: section(".got").map(|(range, _)| range),
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
        self.functions = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                Some((
                    symbol.address(),
                    symbol.size(),
                    symbol.name().ok()?.to_owned(),
                ))
            })
            .collect();
        self.functions.sort();
    }

    /// For the unwinder, once.
    pub fn take_module(&mut self) -> Option<Module<Vec<u8>>> {
        self.module.take()
    }

    /// The function at an address of the process, and whether that is a name.
    pub fn function(&self, address: u64) -> (String, bool) {
        let at = address.wrapping_sub(self.bias);
        let after = self.functions.partition_point(|(first, ..)| *first <= at);
        match after.checked_sub(1).map(|index| &self.functions[index]) {
            Some((first, size, name)) if *size == 0 || at - first < *size => {
                (function_name(name), true)
            }
            _ => (format!("{}+{at:#x}", self.name), false),
        }
    }
}

/// The third field: where in the file the mapping begins.
fn offset(line: &[u8]) -> Option<u64> {
    let field = line.split(|byte| *byte == b' ').nth(2)?;
    u64::from_str_radix(str::from_utf8(field).ok()?, 16).ok()
}

/// The same file as was mapped: another one may have its name by now.
fn content(mapping: &Mapping, budget: &mut u64) -> Option<Vec<u8>> {
    if !mapping.is_file() || !mapping.name.is_absolute() {
        return None;
    }
    let file: File = open_regular(&mapping.name).ok()?;
    let about = file.metadata().ok()?;
    if about.ino() != mapping.file.1 || about.len() > *budget {
        return None;
    }
    let mut content = Vec::new();
    file.take(*budget).read_to_end(&mut content).ok()?;
    *budget = budget.saturating_sub(content.len() as u64);
    Some(content)
}
