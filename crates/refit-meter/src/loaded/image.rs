//! One loaded object as it lies in memory: its dynamic section, the functions that it exports, and the slots through
//! which it calls those of others (elf(5); the generic ABI, chapter 5; the GNU hash table as ld.so reads it, glibc,
//! elf/dl-lookup.c).

use object::elf;

use super::memory::{Memory, word_at};
use crate::arch::ADDRESS_RELOCATIONS;

/// Limits to what is read of one object.
const MOST_ENTRIES: u64 = 4096;
const MOST_RELOCATIONS: u64 = 128 << 20;
const MOST_SYMBOLS: u64 = 1 << 20;
const MOST_NAMES: u64 = 64 << 20;
const MOST_STEPS: u32 = 1 << 16;
/// Elf64_Dyn, Elf64_Rela, Elf64_Sym.
const ENTRY: u64 = 16;
const RELOCATION: u64 = 24;
const SYMBOL: u64 = 24;

/// What the dynamic section tells.
#[derive(Default)]
pub struct Image {
    base: u64,
    names: u64,
    names_bytes: u64,
    symbols: u64,
    gnu_hash: Option<u64>,
    hash: Option<u64>,
    /// Address and size of each table of relocations.
    relocations: [(u64, u64); 2],
    /// Where the loader's list begins: of the program itself.
    pub debug: Option<u64>,
}

/// A slot that holds the address of a function.
pub struct Slot {
    /// Which of the wanted functions.
    pub function: usize,
    /// What it holds now.
    pub address: u64,
}

impl Image {
    /// Of the object whose addresses are moved by `base`, and whose dynamic section lies at `dynamic`.
    pub fn read(memory: &Memory, base: u64, dynamic: u64) -> Option<Image> {
        let mut image = Image {
            base,
            ..Image::default()
        };
        for entry in 0..MOST_ENTRIES {
            let at = dynamic.checked_add(entry * ENTRY)?;
            let (tag, value) = (memory.word(at)?, memory.word(at + 8)?);
            // glibc has moved these addresses already, musl and the vDSO have not.
            let address = if value < base {
                base.checked_add(value)?
            } else {
                value
            };
            match u32::try_from(tag).unwrap_or(u32::MAX) {
                elf::DT_NULL => return Some(image),
                elf::DT_STRTAB => image.names = address,
                elf::DT_STRSZ => image.names_bytes = value,
                elf::DT_SYMTAB => image.symbols = address,
                elf::DT_GNU_HASH => image.gnu_hash = Some(address),
                elf::DT_HASH => image.hash = Some(address),
                elf::DT_RELA => image.relocations[0].0 = address,
                elf::DT_RELASZ => image.relocations[0].1 = value,
                elf::DT_JMPREL => image.relocations[1].0 = address,
                elf::DT_PLTRELSZ => image.relocations[1].1 = value,
                elf::DT_DEBUG => image.debug = Some(value).filter(|value| *value != 0),
                _ => {}
            }
        }
        None
    }

    /// Whether it defines the function for others.
    pub fn exports(&self, memory: &Memory, function: &str) -> bool {
        self.defined(memory, function).is_some()
    }

    fn defined(&self, memory: &Memory, name: &str) -> Option<u64> {
        match (self.gnu_hash, self.hash) {
            (Some(table), _) => self.by_gnu_hash(memory, table, name),
            (None, Some(table)) => self.by_hash(memory, table, name),
            (None, None) => None,
        }
    }

    /// The number of a defined symbol, if it is the one of this name.
    fn named(&self, memory: &Memory, index: u32, name: &str) -> Option<u64> {
        let symbol = self.symbols.checked_add(u64::from(index) * SYMBOL)?;
        // st_name; st_info, st_other, st_shndx.
        let (offset, rest) = (memory.half(symbol)?, memory.half(symbol + 4)?);
        let is_defined = rest >> 16 != u32::from(elf::SHN_UNDEF);
        let is_named = memory.is_text(self.names.checked_add(u64::from(offset))?, name);
        (is_defined && is_named).then_some(u64::from(index))
    }

    fn by_gnu_hash(&self, memory: &Memory, table: u64, name: &str) -> Option<u64> {
        let hash = name.bytes().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(byte.into())
        });
        let buckets = memory.half(table)?;
        let first = memory.half(table + 4)?;
        let bloom = memory.half(table + 8)?;
        let chains = |bucket: u32| {
            (table + 16)
                .checked_add(u64::from(bloom) * 8)?
                .checked_add(u64::from(bucket) * 4)
        };
        let mut index = memory.half(chains(hash.checked_rem(buckets)?)?)?;
        for _ in 0..MOST_STEPS {
            let link = memory
                .half(chains(buckets)?.checked_add(u64::from(index.checked_sub(first)?) * 4)?)?;
            if link | 1 == hash | 1
                && let Some(found) = self.named(memory, index, name)
            {
                return Some(found);
            }
            if link & 1 == 1 {
                return None;
            }
            index = index.checked_add(1)?;
        }
        None
    }

    fn by_hash(&self, memory: &Memory, table: u64, name: &str) -> Option<u64> {
        let hash = elf::hash(name.as_bytes());
        let buckets = memory.half(table)?;
        let word = |at: u32| memory.half(table.checked_add(8 + u64::from(at) * 4)?);
        let mut index = word(hash.checked_rem(buckets)?)?;
        for _ in 0..MOST_STEPS {
            if index == 0 {
                return None;
            }
            if let Some(found) = self.named(memory, index, name) {
                return Some(found);
            }
            index = word(buckets.checked_add(index)?)?;
        }
        None
    }

    /// The slots of these functions; `None` where a table cannot be read.
    pub fn slots(&self, memory: &Memory, functions: &[&str]) -> Option<Vec<Slot>> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        for (table, bytes) in self.relocations {
            if bytes == 0 {
                continue;
            }
            let table = memory.bytes(table, bytes, MOST_RELOCATIONS)?;
            for entry in table.chunks_exact(RELOCATION as usize) {
                let (offset, info) = (word_at(entry, 0)?, word_at(entry, 8)?);
                let kind = u32::try_from(info & u64::from(u32::MAX)).ok()?;
                if info >> 32 != 0 && ADDRESS_RELOCATIONS.contains(&kind) {
                    found.push((offset, info >> 32));
                }
            }
        }
        let Some(most) = found.iter().map(|(_, symbol)| *symbol).max() else {
            return Some(Vec::new());
        };
        let symbols = memory.bytes(self.symbols, (most + 1) * SYMBOL, MOST_SYMBOLS * SYMBOL)?;
        let names = memory.bytes(self.names, self.names_bytes, MOST_NAMES)?;
        let function = |symbol: u64| {
            let entry = usize::try_from(symbol * SYMBOL).ok()?;
            let offset = word_at(&symbols, entry)? & u64::from(u32::MAX);
            let rest = names.get(usize::try_from(offset).ok()?..)?;
            let name = &rest[..rest.iter().position(|byte| *byte == 0)?];
            functions
                .iter()
                .position(|function| function.as_bytes() == name)
        };
        let slots = found.into_iter().filter_map(|(offset, symbol)| {
            let function = function(symbol)?;
            let address = memory.word(self.base.checked_add(offset)?)?;
            Some(Slot { function, address })
        });
        Some(slots.collect())
    }
}
