//! The disk beneath the program: it keeps what it is given, and records it.

mod keeper;

use std::fs::File;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::clock::now;
use crate::fuse::Disk;
use crate::random::Random;
use crate::record::{Entry, Kind, RecordWriter};
use keeper::Keeper;

/// How long flushes take, as equally likely times in nanoseconds; empty: no
/// longer than they do.
pub type Latency = Vec<u64>;

/// A disk that is recorded.
pub struct Recorder {
    keeper: Keeper,
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
            keeper: Keeper::new(content, record)?,
            size,
            latency,
            random: Random::new(seed),
            failed: None,
        })
    }

    /// What the disk did is taken down before the program hears of it.
    fn note(&mut self, kind: Kind, range: (u64, u64), start: u64, data: &[u8]) -> io::Result<()> {
        let entry = Entry {
            kind,
            offset: range.0,
            length: range.1,
            start,
            end: now(),
        };
        self.unless_failed(|keeper| keeper.keep(entry, data))
    }

    /// Whatever fails is remembered.
    fn unless_failed(
        &mut self,
        work: impl FnOnce(&mut Keeper) -> io::Result<()>,
    ) -> io::Result<()> {
        self.refuse_after_failure()?;
        work(&mut self.keeper).map_err(|error| {
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
        self.unless_failed(|keeper| keeper.read(offset, buffer))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let start = now();
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
        let start = now();
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
        self.unless_failed(Keeper::finish)
    }

    /// Bytes of the record so far, and `failed: …`.
    fn status(&mut self) -> String {
        // What fails is said below.
        let _ = self.unless_failed(Keeper::settle);
        let written = self.keeper.written();
        match &self.failed {
            Some(error) => format!("{written} failed: {error}"),
            None => written.to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
