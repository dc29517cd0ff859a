use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::format::{CHUNK, ENTRY_HEADER, Entry, FILE_HEADER, Kind, MAGIC, SECTOR};

/// The largest disk that a record may describe.
const LARGEST_DISK: u64 = 1 << 40;
/// A record with more entries is refused before it fills the memory.
const MOST_ENTRIES: usize = 1 << 26;

/// Why a file cannot be used as a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is not a record of refit crash")]
    Foreign,
    /// It ends within an entry.
    #[error("it ends in the middle of entry {entry}, at byte {at}: the recording was cut short")]
    Truncated {
        /// Counted from 0.
        entry: usize,
        /// Where the entry begins.
        at: u64,
    },
    /// It does not hold what was recorded.
    #[error("entry {entry} at byte {at} is damaged ({what})")]
    Damaged {
        /// Counted from 0.
        entry: usize,
        /// Where the entry begins.
        at: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// More than can be held.
    #[error("it has more than {MOST_ENTRIES} entries; record a shorter run")]
    TooMany,
}

/// Where an entry's data are.
#[derive(Clone, Copy, Debug)]
struct Stored {
    at: u64,
    length: u32,
    is_packed: bool,
}

/// A record that was read and found whole. Its entries are in memory, their data
/// in the file.
#[derive(Debug)]
pub struct Record {
    file: File,
    size: u64,
    entries: Vec<Entry>,
    stored: Vec<Stored>,
}

impl Record {
    /// Reads and checks every entry.
    ///
    /// # Errors
    /// [`RecordError`]: nothing in the file is trusted.
    pub fn open(path: &Path) -> Result<Record, RecordError> {
        Self::read(File::open(path)?)
    }

    /// As [`Record::open`], from an open file.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn read(file: File) -> Result<Record, RecordError> {
        let mut from = BufReader::with_capacity(1 << 20, file.try_clone()?);
        let size = file_header(&mut from)?;
        let mut record = Record {
            file,
            size,
            entries: Vec::new(),
            stored: Vec::new(),
        };
        let mut at = FILE_HEADER as u64;
        let mut data = Vec::with_capacity(CHUNK);
        loop {
            let entry = record.entries.len();
            let truncated = || RecordError::Truncated { entry, at };
            let mut header = [0; ENTRY_HEADER];
            match fill(&mut from, &mut header)? {
                0 => return Ok(record),
                ENTRY_HEADER => {}
                _ => return Err(truncated()),
            }
            let damaged = |what| RecordError::Damaged { entry, at, what };
            let length = number32(&header[4..]);
            if length as usize > CHUNK {
                return Err(damaged("its data are longer than a chunk"));
            }
            data.resize(length as usize, 0);
            if fill(&mut from, &mut data)? != data.len() {
                return Err(truncated());
            }
            let read = record.checked(&header, &data).map_err(damaged)?;
            if record.entries.len() == MOST_ENTRIES {
                return Err(RecordError::TooMany);
            }
            record.entries.push(read);
            record.stored.push(Stored {
                at: at + ENTRY_HEADER as u64,
                length,
                is_packed: header[1] == 1,
            });
            at += ENTRY_HEADER as u64 + u64::from(length);
        }
    }

    /// The entry that a header describes, or what is wrong with it.
    fn checked(&self, header: &[u8; ENTRY_HEADER], data: &[u8]) -> Result<Entry, &'static str> {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&header[..40]);
        sum.update(data);
        if sum.finalize() != number32(&header[40..]) {
            return Err("its check sum is wrong");
        }
        let entry = Entry {
            kind: Kind::of_code(header[0]).ok_or("its kind is unknown")?,
            offset: number64(&header[8..]),
            length: number64(&header[16..]),
            start: number64(&header[24..]),
            end: number64(&header[32..]),
        };
        let end = entry.offset.checked_add(entry.length);
        if end.is_none_or(|end| end > self.size) {
            return Err("it lies beyond the end of the disk");
        }
        if !entry.offset.is_multiple_of(SECTOR) || !entry.length.is_multiple_of(SECTOR) {
            return Err("it does not cover whole sectors");
        }
        let is_write = entry.kind == Kind::Write;
        let fits = match (is_write, header[1]) {
            (true, 0) => entry.length == data.len() as u64,
            (true, 1) => entry.length <= CHUNK as u64 && !data.is_empty(),
            (false, 0) => data.is_empty(),
            _ => false,
        };
        if !fits || (is_write && entry.length == 0) {
            return Err("its data do not have its length");
        }
        let before = self.entries.last();
        if entry.start > entry.end
            || before.is_some_and(|before| entry.start < before.start || entry.end < before.end)
        {
            return Err("its time runs backwards");
        }
        Ok(entry)
    }

    /// Bytes of the disk.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What reached the disk, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes of the record's file that hold this entry's data.
    #[must_use]
    pub fn stored_bytes(&self, index: usize) -> u64 {
        self.stored[index].length.into()
    }

    /// The data of a write, in `data`.
    ///
    /// # Errors
    /// The file cannot be read, or no longer holds what it held when it was opened.
    pub fn data(&self, index: usize, data: &mut Vec<u8>) -> io::Result<()> {
        let stored = self.stored[index];
        let mut bytes = vec![0; stored.length as usize];
        self.file.read_exact_at(&mut bytes, stored.at)?;
        let length = usize::try_from(self.entries[index].length).expect("at most a chunk");
        if stored.is_packed {
            data.resize(length, 0);
            let unpacked = lz4_flex::block::decompress_into(&bytes, data);
            if unpacked.ok() != Some(length) {
                return Err(io::ErrorKind::InvalidData.into());
            }
        } else {
            *data = bytes;
        }
        Ok(())
    }
}

fn file_header(from: &mut impl Read) -> Result<u64, RecordError> {
    let mut header = [0; FILE_HEADER];
    if fill(from, &mut header)? != FILE_HEADER
        || header[..8] != MAGIC
        || crc32fast::hash(&header[..16]) != number32(&header[16..])
    {
        return Err(RecordError::Foreign);
    }
    let size = number64(&header[8..]);
    if size == 0 || !size.is_multiple_of(SECTOR) || size > LARGEST_DISK {
        return Err(RecordError::Foreign);
    }
    Ok(size)
}

/// Fills the buffer as far as there are bytes; returns how many.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn number32(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn number64(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}
