//! The loader's list of what it has loaded, as debuggers read it (link.h, struct r_debug and struct link_map; musl's
//! begin alike). One list for each namespace: dlmopen(3) makes further ones.

use object::elf;

use super::image::Image;
use super::memory::{Memory, word_at};

/// Limits to lists that another process may change or forge.
const MOST_OBJECTS: usize = 65_536;
const MOST_NAMESPACES: usize = 64;
const MOST_HEADERS: u64 = 256;
/// Elf64_Phdr.
const HEADER: u64 = 56;

/// One entry.
pub struct Entry {
    /// 0: the program's own.
    pub namespace: usize,
    /// By how much its addresses are moved.
    pub base: u64,
    /// Where its dynamic section lies.
    pub dynamic: u64,
}

/// What the program's own headers say.
pub enum Program {
    /// A loader works for it: its dynamic section.
    Dynamic(Image),
    /// It came without one.
    Static,
}

/// Entries of /proc/PID/auxv (getauxval(3)).
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;

/// Finds the program's dynamic section by its headers in memory.
pub fn program(memory: &Memory, auxv: &[u8]) -> Option<Program> {
    let headers = crate::process_facts::auxiliary(auxv, AT_PHDR)?;
    let count = crate::process_facts::auxiliary(auxv, AT_PHNUM)?;
    let table = memory.bytes(headers, count.checked_mul(HEADER)?, MOST_HEADERS * HEADER)?;
    let (mut own, mut first, mut dynamic, mut has_loader) = (None, None, None, false);
    for header in table.chunks_exact(HEADER as usize) {
        // p_type, p_flags; p_offset; p_vaddr.
        let kind = u32::try_from(word_at(header, 0)? & u64::from(u32::MAX)).ok()?;
        let (offset, address) = (word_at(header, 8)?, word_at(header, 16)?);
        match kind {
            elf::PT_PHDR => own = Some(address),
            // The headers follow the ELF header, which has 64 bytes.
            elf::PT_LOAD if offset == 0 => first = address.checked_add(64),
            elf::PT_DYNAMIC => dynamic = Some(address),
            elf::PT_INTERP => has_loader = true,
            _ => {}
        }
    }
    let (Some(dynamic), true) = (dynamic, has_loader) else {
        return Some(Program::Static);
    };
    let base = headers.checked_sub(own.or(first)?)?;
    Image::read(memory, base, base.checked_add(dynamic)?).map(Program::Dynamic)
}

/// All that is loaded, in the loader's order; `None` where the list cannot be read, as while it changes.
pub fn entries(memory: &Memory, program: &Image) -> Option<Vec<Entry>> {
    let mut found = Vec::new();
    let mut debug = program.debug?;
    for namespace in 0..MOST_NAMESPACES {
        // r_version, r_map, r_brk, r_state, r_ldbase, and since version 2 (glibc 2.35) r_next.
        let (version, mut entry) = (memory.half(debug)?, memory.word(debug + 8)?);
        if version == 0 || memory.half(debug + 24)? != 0 {
            return None;
        }
        while entry != 0 {
            if found.len() == MOST_OBJECTS {
                return None;
            }
            found.push(Entry {
                namespace,
                base: memory.word(entry)?,
                dynamic: memory.word(entry.checked_add(16)?)?,
            });
            entry = memory.word(entry.checked_add(24)?)?;
        }
        if version < 2 {
            break;
        }
        match memory.word(debug + 40)? {
            0 => break,
            next => debug = next,
        }
    }
    Some(found)
}
