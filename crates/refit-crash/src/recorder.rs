//! The disk beneath the program: it stores what it receives, and records it.

mod writer_thread;

use std::fs::File;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::fuse::Disk;
use crate::image::Random;
use crate::record::{Entry, Kind, RecordWriter, now};
use writer_thread::WriterThread;

/// How long flushes take: equally likely times in nanoseconds. Empty: flushes
/// are not delayed.
pub type Latency = Vec<u64>;

/// Between the length and the reason, in the status of a record that could not be continued.
pub const FAILED: &str = " failed: ";

/// A disk that is recorded.
pub struct Recorder {
    writer: WriterThread,
    size: u64,
    latency: Latency,
    random: Random,
    /// Why nothing more is accepted: the record is full, or cannot be written.
    failed: Option<io::Error>,
}

impl Recorder {
    /// An empty disk of `size` bytes.
    ///
    /// # Errors
    /// The content's file cannot be written.
    pub fn new(
        content: File,
        record: RecordWriter,
        size: u64,
        latency: Latency,
        seed: u64,
    ) -> io::Result<Recorder> {
        content.set_len(size)?;
        Ok(Recorder {
            writer: WriterThread::new(content, record)?,
            size,
            latency,
            random: Random::new(seed),
            failed: None,
        })
    }

    /// Records what the disk did, before the kernel gets its answer.
    fn record(&mut self, kind: Kind, range: (u64, u64), start: u64, data: &[u8]) -> io::Result<()> {
        let entry = Entry {
            kind,
            offset: range.0,
            length: range.1,
            start,
            end: now(),
        };
        self.unless_failed(|writer| writer.append(entry, data))
    }

    /// Does `work`, and remembers its failure.
    fn unless_failed(
        &mut self,
        work: impl FnOnce(&mut WriterThread) -> io::Result<()>,
    ) -> io::Result<()> {
        self.refuse_after_failure()?;
        work(&mut self.writer).map_err(|error| {
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
        self.unless_failed(|writer| writer.read(offset, buffer))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = now();
        self.record(Kind::Write, (offset, data.len() as u64), start, data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.refuse_after_failure()?;
        let start = now();
        if !self.latency.is_empty() {
            let draw = self.random.below(self.latency.len() as u64);
            let draw = usize::try_from(draw).unwrap_or(0);
            sleep(Duration::from_nanos(self.latency[draw]));
        }
        self.record(Kind::Flush, (0, 0), start, &[])
    }

    fn zero(&mut self, offset: u64, length: u64, is_discard: bool) -> io::Result<()> {
        let start = now();
        let kind = if is_discard {
            Kind::Discard
        } else {
            Kind::Zero
        };
        self.record(kind, (offset, length), start, &[])
    }

    /// `finish` hands the record to its file.
    fn control(&mut self, command: &str) -> io::Result<()> {
        if command != "finish" {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.unless_failed(WriterThread::finish)
    }

    /// The record's length in bytes; after a failure also [`FAILED`] and why.
    fn status(&mut self) -> String {
        // A failure is part of the text below.
        let _ = self.unless_failed(WriterThread::drain);
        let written = self.writer.written();
        match &self.failed {
            Some(error) => format!("{written}{FAILED}{error}"),
            None => written.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
