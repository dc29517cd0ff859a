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
    /// Sync calls that it defines, and calls that open files and may be asked for O_SYNC, sorted: where it is preloaded,
    /// it takes their place. Empty for a C library, whose are the real ones.
    pub sync_exports: Vec<String>,
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

/// Functions that open files.
const OPEN_NAMES: [&str; 6] = ["open", "open64", "openat", "openat64", "creat", "creat64"];

/// Each C library starts programs, by a function of this name (glibc, musl).
const STARTS_PROGRAMS: &str = "__libc_start_main";

/// elf.h.
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// Bytes of a file that are read: a browser's executable has 200 MB, and a sparse file may claim terabytes.
const MOST: u64 = 1 << 29;
/// Limit to the names of symbols that are looked through, in bytes: each of some millions may
/// be as long as the file.
const MOST_NAMES: usize = 1 << 30;
/// Limits to the dynamic section: its entries, and the length of a text (PATH_MAX).
const MOST_ENTRIES: usize = 4096;
const LONGEST: usize = 4096;

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
        let mut left = MOST_NAMES;
        let mut is_c_library = false;
        for symbol in elf.dynamic_symbols() {
            let name = symbol.name();
            // One without an end was looked for in all of them.
            let length = name.as_ref().map_or(file.len(), |name| name.len());
            let Some(rest) = left.checked_sub(length) else {
                break;
            };
            left = rest;
            let Ok(name) = name else { continue };
            if name == "malloc" && !symbol.is_undefined() {
                facts.exports_malloc = true;
            }
            let is_sync = SYNC_NAMES.contains(&name);
            if symbol.is_undefined() {
                facts.sync_imports.extend(is_sync.then(|| name.to_owned()));
            } else if is_sync || OPEN_NAMES.contains(&name) {
                facts.sync_exports.push(name.to_owned());
            } else if name == STARTS_PROGRAMS {
                is_c_library = true;
            }
        }
        if is_c_library {
            facts.sync_exports.clear();
        }
        facts.sync_imports.sort();
        facts.sync_exports.sort();
        // A symbol may have several versions.
        facts.sync_exports.dedup();
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
        for at in (0..entries.len()).step_by(16).take(MOST_ENTRIES) {
            let (Some(tag), Some(offset)) = (u64_at(entries, at), u64_at(entries, at + 8)) else {
                return;
            };
            let text = || {
                let bytes = strings.get(usize::try_from(offset).ok()?..)?;
                let bytes = &bytes[..bytes.len().min(LONGEST)];
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

    /// An executable with these symbols of the name at 0, and names without an end.
    fn with_endless_names(symbols: u64, names: usize) -> Vec<u8> {
        let at = 64 + 3 * 64;
        let size = symbols * 24;
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        let header: [(usize, &[u8]); 6] = [
            (16, &[3, 0, 62, 0, 1]), // e_type, e_machine, e_version
            (40, &[64]),             // e_shoff
            (52, &[64]),             // e_ehsize
            (58, &[64]),             // e_shentsize
            (60, &[3]),              // e_shnum
            (62, &[2]),              // e_shstrndx
        ];
        for (place, bytes) in header {
            file[place..place + bytes.len()].copy_from_slice(bytes);
        }
        // sh_type, sh_offset, sh_size, sh_link, sh_entsize: SHT_NULL, SHT_DYNSYM, SHT_STRTAB.
        let sections = [
            (0, 0, 0, 0, 0),
            (11, at, size, 2, 24),
            (3, at + size, names as u64, 0, 0),
        ];
        for (kind, offset, size, link, entry) in sections {
            let mut section = [0_u64; 8];
            section[0] = kind << 32;
            (section[3], section[4]) = (offset, size);
            (section[5], section[7]) = (link, entry);
            file.extend(section.iter().flat_map(|word| word.to_le_bytes()));
        }
        file.extend((0..symbols).flat_map(|_| [0_u8; 24]));
        file.resize(file.len() + names, b'A');
        file
    }

    #[test]
    fn names_without_an_end_are_not_looked_for_again_and_again() {
        let small = with_endless_names(3, 100);
        let elf = object::File::parse(&*small).unwrap();
        assert!(
            elf.dynamic_symbols().count() > 0
                && elf.dynamic_symbols().all(|one| one.name().is_err())
        );
        // Each look for an end reads all of the names.
        let looking = |symbols| {
            let file = with_endless_names(symbols, 1 << 20);
            let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let before = now();
            let _ = ElfFacts::read(&file);
            let time = now() - before;
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        };
        let [some, many] = [100, 10_000].map(looking);
        assert!(many < 40 * some, "{many} ns instead of {some}");
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
