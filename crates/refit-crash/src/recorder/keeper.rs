//! Keeps what the disk was given, in a thread of its own: the program waits for
//! the disk, and the disk for nothing that only the record needs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};

use rustix::fs::{FallocateFlags, fallocate};

use crate::record::{Entry, Kind, RecordWriter};

/// A batch is handed over when it has so many bytes or entries.
const FULL_BYTES: usize = 1 << 20;
const FULL_ENTRIES: usize = 1 << 12;
/// So many are under way; then the disk waits.
const MOST: usize = 4;

/// Some of what the disk was given, in order.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    /// Of the writes among them, one behind the other.
    data: Vec<u8>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.data.len() >= FULL_BYTES || self.entries.len() >= FULL_ENTRIES
    }
}

/// Where it is kept.
struct Store {
    /// What the disk holds, in a sparse file.
    content: File,
    record: RecordWriter,
}

impl Store {
    fn keep(&mut self, batch: &Batch) -> io::Result<()> {
        let mut rest = &batch.data[..];
        for entry in &batch.entries {
            let mut data: &[u8] = &[];
            match entry.kind {
                Kind::Write => {
                    let length = usize::try_from(entry.length).expect("it was in memory");
                    (data, rest) = rest.split_at(length);
                    self.content.write_all_at(data, entry.offset)?;
                }
                Kind::Discard | Kind::Zero => {
                    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                    fallocate(&self.content, flags, entry.offset, entry.length)?;
                }
                Kind::Flush => {}
            }
            self.record.append(*entry, data)?;
        }
        Ok(())
    }
}

/// A batch that was kept, and the bytes of the record so far.
type Kept = io::Result<(Batch, u64)>;

struct Thread {
    to: Sender<Batch>,
    from: Receiver<Kept>,
    handle: JoinHandle<io::Result<()>>,
}

impl Thread {
    fn start(mut store: Store) -> Thread {
        let (to, batches) = channel::<Batch>();
        let (answers, from) = channel();
        let handle = spawn(move || {
            for batch in batches {
                let kept = store.keep(&batch).map(|()| (batch, store.record.written()));
                let is_over = kept.is_err();
                // Who no longer listens has ended.
                if answers.send(kept).is_err() || is_over {
                    break;
                }
            }
            store.record.flush()
        });
        Thread { to, from, handle }
    }
}

/// A disk's content and its record.
pub struct Keeper {
    /// For what is read.
    content: File,
    /// Until the first batch is full: who serves a disk changes its namespace
    /// before, which only a process of one thread may (setns(2)).
    store: Option<Store>,
    thread: Option<Thread>,
    batch: Batch,
    under_way: usize,
    written: u64,
}

impl Keeper {
    /// Keeps the content of an empty disk in the first, and what it was given in
    /// the second.
    ///
    /// # Errors
    /// There can be no more descriptors.
    pub fn new(content: File, record: RecordWriter) -> io::Result<Keeper> {
        Ok(Keeper {
            content: content.try_clone()?,
            written: record.written(),
            store: Some(Store { content, record }),
            thread: None,
            batch: Batch::default(),
            under_way: 0,
        })
    }

    /// Bytes of the record when [`Keeper::settle`] was last called.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Takes an entry, `data` being what was written.
    ///
    /// # Errors
    /// Something before it could not be kept.
    pub fn keep(&mut self, entry: Entry, data: &[u8]) -> io::Result<()> {
        self.batch.entries.push(entry);
        self.batch.data.extend_from_slice(data);
        if self.batch.is_full() {
            self.hand_over()?;
        }
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if let Some(store) = self.store.take() {
            self.thread = Some(Thread::start(store));
        }
        let over = || io::Error::other("the record is finished");
        let thread = self.thread.as_ref().ok_or_else(over)?;
        let batch = std::mem::take(&mut self.batch);
        // A thread that has ended said why, which is still to be heard.
        let _ = thread.to.send(batch);
        self.under_way += 1;
        if self.under_way == MOST {
            self.batch = self.hear()?;
        }
        Ok(())
    }

    /// The oldest batch that is under way, empty again.
    fn hear(&mut self) -> io::Result<Batch> {
        let ended = || io::Error::other("the thread that writes the record has ended");
        let thread = self.thread.as_ref().ok_or_else(ended)?;
        let (mut batch, written) = thread.from.recv().map_err(|_| ended())??;
        self.under_way -= 1;
        self.written = written;
        batch.entries.clear();
        batch.data.clear();
        Ok(batch)
    }

    /// Everything that was taken is kept.
    ///
    /// # Errors
    /// Something could not be.
    pub fn settle(&mut self) -> io::Result<()> {
        if !self.batch.entries.is_empty() {
            self.hand_over()?;
        }
        while self.under_way > 0 {
            let batch = self.hear()?;
            self.batch = batch;
        }
        Ok(())
    }

    /// Fills the buffer from this offset of the disk.
    ///
    /// # Errors
    /// Something could not be kept, or cannot be read.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.settle()?;
        self.content.read_exact_at(buffer, offset)
    }

    /// The record is handed to its file; nothing more is taken.
    ///
    /// # Errors
    /// Something could not be kept.
    pub fn finish(&mut self) -> io::Result<()> {
        self.settle()?;
        if let Some(mut store) = self.store.take() {
            return store.record.flush();
        }
        let Some(Thread { to, handle, .. }) = self.thread.take() else {
            return Ok(());
        };
        drop(to);
        let panicked = |_| {
            Err(io::Error::other(
                "the thread that writes the record panicked",
            ))
        };
        handle.join().unwrap_or_else(panicked)
    }
}
