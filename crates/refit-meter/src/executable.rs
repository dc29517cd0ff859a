//! What an executable file says of itself: system call instructions of its own,
//! a malloc of its own, and the sync calls that it imports.
//!
//! A preload sees calls through the C library only. What an executable asks of
//! the kernel by its own `syscall` instruction (Go, hand-written assembly, a
//! private runtime) is not seen, so it is said to be unknown instead of 0.

use std::fs;
use std::path::Path;

use memchr::memmem;
use object::{Object, ObjectSymbol};

/// Executables beyond this size are not read.
const MOST_BYTES: u64 = 256 << 20;

/// x86-64 numbers of calls that make data durable, and of those under which
/// such calls hide: msync, fsync, fdatasync, sync, io_submit, sync_file_range,
/// syncfs, io_uring_setup, io_uring_enter (asm/unistd_64.h).
const NUMBERS: [u32; 9] = [26, 74, 75, 162, 209, 277, 306, 425, 426];

const SYSCALL: &[u8] = &[0x0f, 0x05];

/// Whether the executable file at `path` seems to make durability calls by
/// instructions of its own. `false` where it cannot be read.
#[must_use]
pub fn has_own_syscalls(path: &Path) -> bool {
    let small = fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST_BYTES);
    small && fs::read(path).is_ok_and(|file| code(&file).any(segment_has))
}

/// Either one of our numbers is loaded into eax shortly before the instruction,
/// or the result is compared with -4095 (all errors) shortly after it: a
/// wrapper for any number, as in Go's runtime.
fn segment_has(code: &[u8]) -> bool {
    memmem::find_iter(code, SYSCALL).any(|at| {
        let before = &code[at.saturating_sub(32)..at];
        let after = &code[at + 2..code.len().min(at + 2 + 8)];
        let loads = before
            .windows(5)
            .any(|w| w[0] == 0xb8 && is_number(&w[1..5]))
            || before
                .windows(7)
                .any(|w| w[..3] == [0x48, 0xc7, 0xc0] && is_number(&w[3..7]));
        let wraps = after
            .windows(6)
            .any(|w| w == [0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff]);
        loads || wraps
    })
}

fn is_number(bytes: &[u8]) -> bool {
    let number = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    NUMBERS.contains(&number)
}

/// The executable segments of a 64-bit ELF file.
fn code(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_elf64 = file.starts_with(&[0x7f, b'E', b'L', b'F', 2]);
    let offset = u64_at(file, 32).unwrap_or_default();
    let count = u64_at(file, 56).unwrap_or_default() & 0xffff; // e_phnum, 16 bits
    (0..if is_elf64 { count } else { 0 }).filter_map(move |i| {
        let header = usize::try_from(offset.checked_add(i * 56)?).ok()?;
        let type_and_flags = u64_at(file, header)?;
        let is_load = type_and_flags & 0xffff_ffff == 1;
        let is_executable = type_and_flags >> 32 & 1 != 0;
        let start = usize::try_from(u64_at(file, header.checked_add(8)?)?).ok()?;
        let size = usize::try_from(u64_at(file, header.checked_add(32)?)?).ok()?;
        let end = start.checked_add(size)?;
        file.get(start..end).filter(|_| is_load && is_executable)
    })
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What the dynamic symbols of an executable say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElfFacts {
    /// It defines malloc, which then wins over any preload.
    pub exports_malloc: bool,
    /// Sync calls that it imports, sorted.
    pub sync_imports: Vec<String>,
}

/// Names behind which a call for durability can stand.
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

impl ElfFacts {
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
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loaded_number_and_a_generic_wrapper_are_found() {
        let fsync = [0xb8, 74, 0, 0, 0, 0x0f, 0x05, 0xc3];
        let getpid = [0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3];
        let wrapper = [0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff];
        assert!(segment_has(&fsync));
        assert!(!segment_has(&getpid));
        assert!(segment_has(&wrapper));
        assert!(!segment_has(&[0x0f, 0x05]));
    }

    #[test]
    fn no_elf_file_has_none() {
        assert!(!has_own_syscalls(Path::new("/etc/passwd")));
        assert!(!has_own_syscalls(Path::new("/nonexistent")));
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
        assert!(code(&whole).next().is_some(), "/bin/true has code");
        for _ in 0..2_000 {
            let mut file = whole.clone();
            // Headers and tables lie at the beginning; sizes get extreme values.
            for _ in 0..4 {
                let at = random(2_048);
                file[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)];
            }
            file.truncate(random(whole.len()) + 1);
            let _ = code(&file).any(segment_has);
            let _ = ElfFacts::read(&file);
        }
    }
}
