//! What an executable file contains: a malloc of its own, the sync calls that it
//! imports, and what it is linked with.

use std::io::{self, Read};
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol};
use refit_session::open_regular;

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What the dynamic section of an executable contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElfFacts {
    /// It defines malloc, which then wins over any preload.
    pub exports_malloc: bool,
    /// Sync calls that it imports, sorted.
    pub sync_imports: Vec<String>,
    /// Names of the libraries that it is linked with, in order.
    pub needed: Vec<String>,
    /// Directories in which it looks for them before the system's own, as written: `$ORIGIN` stands for the
    /// directory that it lies in.
    pub library_path: Vec<String>,
}

/// Functions that can make data durable.
const SYNC_NAMES: [&str; 10] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "pwritev2",
    "aio_fsync",
    "syscall",
    "io_uring_queue_init",
];

/// elf.h.
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Bytes of a file that are read: a browser's executable has 200 MB, and a sparse file may claim terabytes.
const MOST: u64 = 1 << 29;

impl ElfFacts {
    /// Of the regular file at `path`.
    ///
    /// # Errors
    /// It is none, it cannot be read, or it is larger than 512 MiB.
    pub fn of(path: &Path) -> io::Result<ElfFacts> {
        let mut file = open_regular(path)?;
        if file.metadata()?.len() > MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(ElfFacts::read(&bytes))
    }

    /// Reads the bytes of an ELF file; nothing is known of any other.
    #[must_use]
    pub fn read(file: &[u8]) -> ElfFacts {
        let mut facts = ElfFacts::default();
        let Ok(elf) = object::File::parse(file) else {
            return facts;
        };
        for symbol in elf.dynamic_symbols() {
            let Ok(name) = symbol.name() else { continue };
            if name == "malloc" && !symbol.is_undefined() {
                facts.exports_malloc = true;
            }
            if symbol.is_undefined() && SYNC_NAMES.contains(&name) {
                facts.sync_imports.push(name.to_owned());
            }
        }
        facts.sync_imports.sort();
        facts.read_dynamic(&elf);
        facts
    }

    /// The entries of the dynamic section (elf(5)): pairs of a tag and an offset into its strings.
    fn read_dynamic(&mut self, elf: &object::File) {
        let data = |name| {
            elf.section_by_name(name)
                .and_then(|section| section.data().ok())
        };
        let (Some(entries), Some(strings)) = (data(".dynamic"), data(".dynstr")) else {
            return;
        };
        for at in (0..entries.len()).step_by(16) {
            let (Some(tag), Some(offset)) = (u64_at(entries, at), u64_at(entries, at + 8)) else {
                return;
            };
            let text = || {
                let bytes = strings.get(usize::try_from(offset).ok()?..)?;
                let end = bytes.iter().position(|byte| *byte == 0)?;
                std::str::from_utf8(&bytes[..end]).ok()
            };
            match tag {
                DT_NULL => return,
                DT_NEEDED => self.needed.extend(text().map(str::to_owned)),
                DT_RPATH | DT_RUNPATH => {
                    let directories = text().into_iter().flat_map(|path| path.split(':'));
                    self.library_path.extend(directories.map(str::to_owned));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_a_program_is_linked_with_is_read() {
        let facts = ElfFacts::read(&fs::read("/bin/true").unwrap());
        assert!(
            facts.needed.iter().any(|name| name.starts_with("libc.")),
            "{:?}",
            facts.needed
        );
        assert!(!facts.exports_malloc);
    }

    #[test]
    fn a_damaged_executable_never_panics() {
        let whole = fs::read("/bin/true").unwrap();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        for _ in 0..500 {
            let mut file = whole.clone();
            // Headers and tables lie at the beginning; sizes get extreme values.
            for _ in 0..4 {
                let at = random(2_048);
                file[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)];
            }
            file.truncate(random(whole.len()) + 1);
            let _ = ElfFacts::read(&file);
        }
    }
}
