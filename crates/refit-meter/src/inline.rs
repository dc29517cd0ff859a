//! Executables that carry system call instructions of their own.
//!
//! A preload sees calls through the C library only. What an executable asks of
//! the kernel by its own `syscall` instruction (Go, hand-written assembly, a
//! private runtime) is not seen, so it is said to be unknown instead of 0.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use memchr::memmem;

/// Executables beyond this size are not read to the end.
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
    code(path).is_some_and(|code| code.iter().any(|segment| segment_has(segment)))
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
fn code(path: &Path) -> Option<Vec<Vec<u8>>> {
    let mut file = File::open(path).ok()?;
    let mut head = [0; 64];
    file.read_exact(&mut head).ok()?;
    if head[..5] != [0x7f, b'E', b'L', b'F', 2] {
        return None;
    }
    let u16_at =
        |b: &[u8], at: usize| u16::from_le_bytes(b[at..at + 2].try_into().expect("two bytes"));
    let u32_at =
        |b: &[u8], at: usize| u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"));
    let u64_at =
        |b: &[u8], at: usize| u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"));
    let (offset, count) = (u64_at(&head, 32), u16_at(&head, 56));
    let mut segments = Vec::new();
    for i in 0..u64::from(count.min(64)) {
        let mut header = [0; 56];
        file.seek(SeekFrom::Start(offset.checked_add(i * 56)?))
            .ok()?;
        file.read_exact(&mut header).ok()?;
        let is_load = u32_at(&header, 0) == 1;
        let executable = u32_at(&header, 4) & 1 != 0;
        if is_load && executable {
            let mut segment = Vec::new();
            file.seek(SeekFrom::Start(u64_at(&header, 8))).ok()?;
            (&mut file)
                .take(u64_at(&header, 32).min(MOST_BYTES))
                .read_to_end(&mut segment)
                .ok()?;
            segments.push(segment);
        }
    }
    Some(segments)
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
}
