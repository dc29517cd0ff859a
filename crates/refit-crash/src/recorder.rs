//! The disk beneath the program: it keeps what it is given, and records it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};

use crate::clock::now;
use crate::fuse::Disk;
use crate::random::Random;
use crate::record::{Entry, Kind, RecordWriter};

/// How long flushes take, as equally likely times in nanoseconds; empty: no
/// longer than they do.
pub type Latency = Vec<u64>;

/// A disk that is recorded.
pub struct Recorder {
    /// What it holds, in a sparse file.
    content: File,
    record: RecordWriter,
    size: u64,
    latency: Latency,
    random: Random,
    /// The record is full, or cannot be written: nothing more is accepted.
    failed: Option<io::Error>,
}

impl Recorder {
    /// An empty disk of `size` bytes.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn new(
        content: File,
        record: RecordWriter,
        size: u64,
        latency: Latency,
        seed: u64,
    ) -> io::Result<Recorder> {
        content.set_len(size)?;
        Ok(Recorder {
            content,
            record,
            size,
            latency,
            random: Random::new(seed),
            failed: None,
        })
    }

    /// What the disk did is recorded before the program hears of it.
    fn note(&mut self, kind: Kind, range: (u64, u64), start: u64, data: &[u8]) -> io::Result<()> {
        let entry = Entry {
            kind,
            offset: range.0,
            length: range.1,
            start,
            end: now(),
        };
        self.record.append(entry, data).map_err(|error| {
            let kind = error.kind();
            self.failed.get_or_insert(error);
            kind.into()
        })
    }

    fn refuse_after_failure(&self) -> io::Result<()> {
        match &self.failed {
            Some(error) => Err(error.kind().into()),
            None => Ok(()),
        }
    }
}

impl Disk for Recorder {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.content.read_exact_at(buffer, offset)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.refuse_after_failure()?;
        let start = now();
        self.content.write_all_at(data, offset)?;
        self.note(Kind::Write, (offset, data.len() as u64), start, data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.refuse_after_failure()?;
        let start = now();
        if !self.latency.is_empty() {
            let draw = self.random.below(self.latency.len() as u64);
            let draw = usize::try_from(draw).unwrap_or(0);
            sleep(Duration::from_nanos(self.latency[draw]));
        }
        self.note(Kind::Flush, (0, 0), start, &[])
    }

    fn zero(&mut self, offset: u64, length: u64, is_discard: bool) -> io::Result<()> {
        self.refuse_after_failure()?;
        let start = now();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.content, flags, offset, length)?;
        let kind = if is_discard {
            Kind::Discard
        } else {
            Kind::Zero
        };
        self.note(kind, (offset, length), start, &[])
    }

    /// `finish`: the record is handed to its file.
    fn control(&mut self, words: &str) -> io::Result<()> {
        if words != "finish" {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.refuse_after_failure()?;
        self.record.flush()
    }

    /// Bytes of the record so far, and `failed: …`.
    fn status(&self) -> String {
        let written = self.record.written();
        match &self.failed {
            Some(error) => format!("{written} failed: {error}"),
            None => written.to_string(),
        }
    }
}
