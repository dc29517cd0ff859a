//! The file of an object that a process has mapped: by what its stacks are unwound, and where its names are looked up.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::elf::PF_X;
use object::read::elf::{ElfFile64, ElfSegment64, FileHeader, SectionHeader};
use object::read::{ReadCache, ReadCacheRange, SectionIndex};
use object::{Endianness, Object, ObjectSegment, SegmentFlags};
use refit_session::open_regular;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::mappings::mappings;

/// What the kernel calls its own code in a process.
pub const VDSO: &str = "[vdso]";

/// Longer names of sections are cut off.
const MOST_NAME_BYTES: usize = 1 << 16;

/// Only what is asked for is read: most of a large file is code.
type Elf<'data, 'file> = ElfFile64<'data, Endianness, ReadCacheRange<'data, &'file File>>;

/// Bytes of a section, shared by the processes that map its file.
pub type Section = Arc<[u8]>;

/// An ELF file, with what unwinding needs of it.
#[derive(Debug)]
pub struct ObjectFile {
    /// Open as long as this exists: its names are read later.
    pub file: File,
    /// Where each segment of code lies in the file, and its address.
    segments: Vec<(Range<u64>, u64)>,
    text: Option<Range<u64>>,
    got: Option<Range<u64>>,
    eh_frame: Option<(Range<u64>, Section)>,
    eh_frame_hdr: Option<(Range<u64>, Section)>,
}

impl ObjectFile {
    /// The file of this path, where it is still the one with this inode and is no larger than `most_bytes`, and its size.
    pub fn open(path: &Path, inode: u64, most_bytes: u64) -> Option<(ObjectFile, u64)> {
        let file = open_regular(path).ok()?;
        let about = file.metadata().ok()?;
        let size = about.len();
        if about.ino() != inode || size > most_bytes {
            return None;
        }
        Some((ObjectFile::of(file, size), size))
    }

    /// The code that the kernel puts into each process (vdso(7)), as it is in this one.
    pub fn vdso() -> Option<ObjectFile> {
        let all = mappings(Path::new("/proc"), std::process::id()).ok()?;
        let vdso = all
            .into_iter()
            .find(|mapping| mapping.name.as_os_str() == VDSO)?;
        let mut memory = File::open("/proc/self/mem").ok()?;
        memory.seek(SeekFrom::Start(vdso.start)).ok()?;
        let mut code = Vec::new();
        memory.take(vdso.bytes()).read_to_end(&mut code).ok()?;
        let mut file = File::from(memfd_create("vdso", MemfdFlags::CLOEXEC).ok()?);
        file.write_all(&code).ok()?;
        Some(ObjectFile::of(file, code.len() as u64))
    }

    fn of(file: File, size: u64) -> ObjectFile {
        let mut object = ObjectFile {
            file,
            segments: Vec::new(),
            text: None,
            got: None,
            eh_frame: None,
            eh_frame_hdr: None,
        };
        object.read(size);
        object
    }

    /// What cannot be read is left out.
    fn read(&mut self, size: u64) -> Option<()> {
        let parts = ReadCache::new(&self.file);
        let elf = Elf::parse(parts.range(0, size)).ok()?;
        let content = |range| content(range, &self.file, size);
        // A page of the file may belong to the end of one segment and to the begin of the next: linkers that do not pad.
        let is_code = |segment: &ElfSegment64<'_, '_, Endianness, _>| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        let segments = elf.segments().filter(is_code).map(|segment| {
            let (at, bytes) = segment.file_range();
            (at..at.saturating_add(bytes), segment.address())
        });
        let segments = segments.collect();
        let (endian, table) = (elf.endian(), elf.elf_section_table());
        let names = elf.elf_header().shstrndx(endian, elf.data()).ok()?;
        let names = table.section(SectionIndex(names as usize)).ok()?;
        let names = content(names.file_range(endian)?)?;
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
        let section = |name| {
            let bytes = content(find(name)?.file_range(endian)?)?;
            Some((range(name)?, Section::from(bytes)))
        };
        let sections = (
            range(".text"),
            range(".got"),
            section(".eh_frame"),
            section(".eh_frame_hdr"),
        );
        self.segments = segments;
        (self.text, self.got, self.eh_frame, self.eh_frame_hdr) = sections;
        Some(())
    }

    /// Callers of its functions can be found.
    pub fn is_unwound(&self) -> bool {
        let eh_frame = self.eh_frame.as_ref();
        eh_frame.is_some_and(|(_, bytes)| bytes.len() > 8)
    }

    /// What is added to an address of the file, where the code of it that begins at `offset` is mapped at `start`.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        // Mappings begin at pages, segments anywhere.
        let holds = |range: &Range<u64>| range.start & !4095 <= offset && offset < range.end;
        let (range, address) = self.segments.iter().find(|(range, _)| holds(range))?;
        let in_file = address.wrapping_sub(range.start).wrapping_add(offset);
        Some(start.wrapping_sub(in_file))
    }

    /// For the unwinder of a process that maps it there.
    pub fn module(&self, name: &str, range: Range<u64>, bias: u64) -> Option<Module<Section>> {
        let (eh_frame_svma, eh_frame) = self.eh_frame.clone().unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = self.eh_frame_hdr.clone().unzip();
        let sections = ExplicitModuleSectionInfo {
            text_svma: self.text.clone(),
            got_svma: self.got.clone(),
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            ..ExplicitModuleSectionInfo::default()
        };
        let make = || Module::new(name.to_owned(), range, bias, sections);
        self.is_unwound().then(make)
    }
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
