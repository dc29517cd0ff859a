use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};

use super::format::{CHUNK, ENTRY_HEADER, Entry, FILE_HEADER, Kind, MAGIC};

/// The error of a record that would grow beyond its cap.
pub const OVER_CAP: &str = "the record is full";

/// Appends to a record.
#[derive(Debug)]
pub struct RecordWriter {
    to: BufWriter<File>,
    packed: Vec<u8>,
    written: u64,
    cap: u64,
}

impl RecordWriter {
    /// A new record of a disk of `size` bytes, which may grow to `cap` bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(file: File, size: u64, cap: u64) -> io::Result<RecordWriter> {
        let mut header = [0; FILE_HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..16].copy_from_slice(&size.to_le_bytes());
        let sum = crc32fast::hash(&header[..16]);
        header[16..20].copy_from_slice(&sum.to_le_bytes());
        let mut to = BufWriter::with_capacity(1 << 20, file);
        to.write_all(&header)?;
        Ok(RecordWriter {
            to,
            packed: Vec::new(),
            written: FILE_HEADER as u64,
            cap,
        })
    }

    /// Bytes of the record so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends an entry, `data` being what was written.
    ///
    /// # Errors
    /// `StorageFull` when the record would exceed its cap; else the file cannot
    /// be written.
    pub fn append(&mut self, entry: Entry, data: &[u8]) -> io::Result<()> {
        if entry.kind != Kind::Write {
            return self.one(&entry, &[]);
        }
        let mut offset = entry.offset;
        for chunk in data.chunks(CHUNK) {
            let part = Entry {
                offset,
                length: chunk.len() as u64,
                ..entry
            };
            self.one(&part, chunk)?;
            offset += part.length;
        }
        Ok(())
    }

    fn one(&mut self, entry: &Entry, data: &[u8]) -> io::Result<()> {
        let mut packed = std::mem::take(&mut self.packed);
        packed.resize(lz4_flex::block::get_maximum_output_size(data.len()), 0);
        let length = if data.is_empty() {
            0
        } else {
            lz4_flex::block::compress_into(data, &mut packed).unwrap_or(usize::MAX)
        };
        let is_packed = length < data.len();
        let stored = if is_packed { &packed[..length] } else { data };
        let result = self.put(entry, u8::from(is_packed), stored);
        self.packed = packed;
        result
    }

    fn put(&mut self, entry: &Entry, packing: u8, stored: &[u8]) -> io::Result<()> {
        let length = u32::try_from(stored.len()).expect("at most a chunk");
        let mut header = [0; ENTRY_HEADER];
        header[0] = entry.kind.code();
        header[1] = packing;
        header[4..8].copy_from_slice(&length.to_le_bytes());
        for (at, number) in [
            (8, entry.offset),
            (16, entry.length),
            (24, entry.start),
            (32, entry.end),
        ] {
            header[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        let mut sum = crc32fast::Hasher::new();
        sum.update(&header[..40]);
        sum.update(stored);
        header[40..44].copy_from_slice(&sum.finalize().to_le_bytes());
        let more = (ENTRY_HEADER + stored.len()) as u64;
        if self.written + more > self.cap {
            return Err(io::Error::new(ErrorKind::StorageFull, OVER_CAP));
        }
        self.to.write_all(&header)?;
        self.to.write_all(stored)?;
        self.written += more;
        Ok(())
    }

    /// Everything is handed to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
