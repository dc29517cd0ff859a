//! System call instructions of an executable's own.
//!
//! A preload sees calls through the C library only. Calls that an executable
//! makes with a system call instruction of its own (assembly, a private runtime, a
//! crate that does without a C library) are reached by a filter, or else reported
//! as unknown instead of 0.

use std::fs::File;
use std::io;
use std::path::Path;

use refit_session::open_regular;
use rustix::buffer::spare_capacity;
use rustix::io::pread;

use crate::arch::{IO_SUBMIT, IO_URING_ENTER, NATIVE, SYSCALL, compares_with_errors, loads_number};

/// Bytes that are looked at together, and how many of them once more with the
/// next ones: what belongs to one instruction is never cut.
const CHUNK: usize = 32 * 1024;
const OVERLAP: usize = 64;
/// Program headers lie in the first page of every usual executable.
const HEADERS: usize = 4096;

/// Numbers of calls that make data durable, and of those under which such calls hide.
const NUMBERS: [u32; 9] = [
    NATIVE.msync,
    NATIVE.fsync,
    NATIVE.fdatasync,
    NATIVE.sync,
    IO_SUBMIT,
    NATIVE.sync_file_range,
    NATIVE.syncfs,
    NATIVE.io_uring_setup,
    IO_URING_ENTER,
];

/// Bytes of code that one search reads: a browser's executable has 200 MB. A program
/// of another user may name a sparse file of terabytes as its executable.
const MOST: u64 = 1 << 29;

/// Whether the executable file at `path` seems to make durability calls by
/// instructions of its own. `false` where it cannot be read.
#[must_use]
pub fn has_own_syscalls(path: &Path) -> bool {
    Search::default().finds(path)
}

/// A search through one or several files, which together are read up to a limit.
#[derive(Debug)]
pub struct Search {
    left: u64,
}

impl Default for Search {
    fn default() -> Search {
        Search { left: MOST }
    }
}

impl Search {
    /// As [`has_own_syscalls`]; `true` as well where the limit was reached, and nothing
    /// is known of the rest.
    pub fn finds(&mut self, path: &Path) -> bool {
        open_regular(path)
            .and_then(|file| file_has(&file, &mut self.left))
            .unwrap_or(false)
    }
}

/// Reads code piece by piece into one buffer: this happens at the end of each
/// run, and executables are large.
fn file_has(file: &File, left: &mut u64) -> io::Result<bool> {
    let mut headers = Vec::with_capacity(HEADERS);
    pread(file, spare_capacity(&mut headers), 0)?;
    for (mut at, end) in code(&headers) {
        let length = usize::try_from(end - at).unwrap_or(CHUNK);
        let mut chunk = Vec::with_capacity(length.min(CHUNK));
        while at < end {
            if *left < CHUNK as u64 {
                return Ok(true);
            }
            *left -= CHUNK as u64;
            chunk.clear();
            pread(file, spare_capacity(&mut chunk), at)?;
            // What follows is no code.
            chunk.truncate(usize::try_from(end - at).unwrap_or(CHUNK));
            if code_has(&chunk) {
                return Ok(true);
            }
            let got = chunk.len();
            if got < CHUNK {
                break;
            }
            at += (got - OVERLAP) as u64;
        }
    }
    Ok(false)
}

/// Either one of our numbers is loaded shortly before the instruction, or the result
/// is compared with -4095 (all errors) shortly after it: a wrapper for any number, as
/// in Go's runtime.
fn code_has(code: &[u8]) -> bool {
    syscalls(code).any(|at| {
        let before = &code[at.saturating_sub(32)..at];
        let after = at + SYSCALL.len();
        let after = &code[after..code.len().min(after + 8)];
        loads_number(before, |number| NUMBERS.contains(&number)) || compares_with_errors(after)
    })
}

/// Where the instruction is in the code. Eight bytes are compared at once: libraries
/// that search bytes ask first what the processor can do, which takes 0.1 ms in some
/// virtual machines, and this is done at each start of a program.
fn syscalls(code: &[u8]) -> impl Iterator<Item = usize> {
    const BLOCK: usize = 64;
    const WORD: usize = size_of::<u64>();
    // Its last two bytes are searched.
    const FIRST: usize = SYSCALL.len() - 2;
    let repeated = |byte: u8| u64::from_ne_bytes([byte; WORD]);
    let is_there = |at: &usize| {
        let start = at.checked_sub(FIRST);
        start.and_then(|start| code.get(start..at + 2)) == Some(&SYSCALL)
    };
    let may_hold_one = move |start: &usize| {
        let Some(block) = code[*start..].first_chunk::<{ BLOCK + 1 }>() else {
            return true;
        };
        let word =
            |at: usize| u64::from_ne_bytes(block[at..at + WORD].try_into().expect("eight bytes"));
        let mut zeros = 0;
        // Not step_by, whose checks of each index stay at opt-level s.
        for i in 0..BLOCK / WORD {
            let first = word(i * WORD) ^ repeated(SYSCALL[FIRST]);
            let second = word(i * WORD + 1) ^ repeated(SYSCALL[FIRST + 1]);
            let differs = first | second;
            // The highest bit of the lowest byte that is 0, if one is.
            zeros |= differs.wrapping_sub(repeated(0x01)) & !differs & repeated(0x80);
        }
        zeros != 0
    };
    let blocks = (0..code.len()).step_by(BLOCK).filter(may_hold_one);
    blocks
        .flat_map(move |start| (start..start + BLOCK).filter(is_there))
        .map(|at| at - FIRST)
}

/// Where the executable segments of a 64-bit ELF file begin and end.
fn code(headers: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let is_elf64 = headers.starts_with(&[0x7f, b'E', b'L', b'F', 2]);
    let offset = u64_at(headers, 32).unwrap_or_default();
    let count = u64_at(headers, 56).unwrap_or_default() & 0xffff; // e_phnum, 16 bits
    (0..if is_elf64 { count } else { 0 }).filter_map(move |i| {
        let header = usize::try_from(offset.checked_add(i * 56)?).ok()?;
        let type_and_flags = u64_at(headers, header)?;
        let is_load = type_and_flags & 0xffff_ffff == 1;
        let is_executable = type_and_flags >> 32 & 1 != 0;
        let start = u64_at(headers, header.checked_add(8)?)?;
        let end = start.checked_add(u64_at(headers, header.checked_add(32)?)?)?;
        (is_load && is_executable).then_some((start, end))
    })
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::arch::EXAMPLES;

    #[test]
    fn a_loaded_number_and_a_generic_wrapper_are_found() {
        let [fsync, getpid, wrapper] = EXAMPLES;
        assert!(code_has(fsync));
        assert!(!code_has(getpid));
        assert!(code_has(wrapper));
        assert!(!code_has(&SYSCALL));
    }

    #[test]
    fn every_instruction_is_found() {
        for at in 0..200 {
            let mut code = vec![SYSCALL[0]; 200 + SYSCALL.len()];
            code[at..][..SYSCALL.len()].copy_from_slice(&SYSCALL);
            assert_eq!(syscalls(&code).collect::<Vec<_>>(), [at]);
        }
        assert_eq!(syscalls(&SYSCALL[..1]).count(), 0);
    }

    #[test]
    fn no_elf_file_has_none() {
        assert!(!has_own_syscalls(Path::new("/etc/passwd")));
        assert!(!has_own_syscalls(Path::new("/nonexistent")));
    }

    #[test]
    fn a_sparse_executable_ends_the_search() {
        let mut headers = vec![0_u8; 64 + 56];
        headers[..5].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2]);
        headers[32] = 64; // e_phoff
        headers[56] = 1; // e_phnum
        let load = [1_u64 | 1 << 32, 0, 0, 0, 1 << 43];
        for (field, number) in load.into_iter().enumerate() {
            headers[64 + 8 * field..][..8].copy_from_slice(&number.to_le_bytes());
        }
        let sparse = tempfile::NamedTempFile::new().unwrap();
        fs::write(sparse.path(), &headers).unwrap();
        sparse.as_file().set_len(1 << 43).unwrap();
        let mut search = Search { left: 1 << 20 };
        assert!(search.finds(sparse.path()));
        // Nothing is left for another file.
        assert!(search.finds(Path::new("/bin/true")));
        assert!(!has_own_syscalls(Path::new("/bin/true")));
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
        for _ in 0..500 {
            let mut file = whole.clone();
            // Headers and tables lie at the beginning; sizes get extreme values.
            for _ in 0..4 {
                let at = random(2_048);
                file[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)];
            }
            file.truncate(random(whole.len()) + 1);
            let damaged = tempfile::NamedTempFile::new().unwrap();
            fs::write(damaged.path(), &file).unwrap();
            let _ = has_own_syscalls(damaged.path());
        }
    }
}
