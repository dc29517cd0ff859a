//! The memory of another process, read while it runs.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::tree::at;

/// Open for reading only; the process does not notice, and is never stopped.
pub struct Memory {
    file: File,
    /// Bytes that may still be read.
    left: Cell<u64>,
}

/// Limit to all that is read of a process: its lists may lead in circles. The largest
/// programs have some tens of MB of relocations and symbols.
const MOST: u64 = 512 << 20;
/// What a read counts at least, so that their number is limited too.
const LEAST: u64 = 256;
/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

impl Memory {
    /// # Errors
    /// No right to it (ptrace(2), PTRACE_MODE_ATTACH_FSCREDS).
    pub fn open(proc: &Path, pid: u32) -> io::Result<Memory> {
        Ok(Memory::of(File::open(at(proc, pid).join("mem"))?))
    }

    /// What lies at an address is at this offset of the file.
    pub fn of(file: File) -> Memory {
        let left = Cell::new(MOST);
        Memory { file, left }
    }

    fn read(&self, bytes: &mut [u8], address: u64) -> Option<()> {
        let cost = LEAST.max(bytes.len() as u64);
        self.left.set(self.left.get().checked_sub(cost)?);
        self.file.read_exact_at(bytes, address).ok()
    }

    /// `None` where not all of it is mapped, or it is more than `most` bytes: nothing there is trusted.
    pub fn bytes(&self, address: u64, length: u64, most: u64) -> Option<Vec<u8>> {
        let length = usize::try_from(length).ok().filter(|_| length <= most)?;
        let mut bytes = Vec::new();
        // Piece by piece: what is not there takes no room, whatever length a table claims.
        while bytes.len() < length {
            let start = bytes.len();
            bytes.resize(length.min(start + PIECE), 0);
            self.read(&mut bytes[start..], address.checked_add(start as u64)?)?;
        }
        Some(bytes)
    }

    /// A number of eight bytes.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(&mut bytes, address)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// A number of four bytes.
    pub fn half(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(&mut bytes, address)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// Whether a text that ends with a zero byte lies there.
    pub fn is_text(&self, address: u64, text: &str) -> bool {
        let length = text.len() as u64;
        self.bytes(address, length + 1, length + 1)
            .is_some_and(|bytes| bytes.split_last() == Some((&0, text.as_bytes())))
    }
}

/// The number of eight bytes at an offset of a table.
pub fn word_at(table: &[u8], at: usize) -> Option<u64> {
    let bytes = table.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
