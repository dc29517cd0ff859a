//! Stores what the disk received, in a thread of its own: the program waits for
//! the disk, and the disk does not wait for the record.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, spawn};

use rustix::fs::{FallocateFlags, fallocate};

use crate::record::{Entry, Kind, RecordWriter};

/// A batch with this many bytes or entries is handed to the thread.
const FULL_BYTES: usize = 1 << 20;
const FULL_ENTRIES: usize = 1 << 12;
/// With this many batches in the thread's queue the disk waits.
const MAX_QUEUED: usize = 4;

/// Part of what the disk received, in order.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    /// The data of its writes, one after the other.
    data: Vec<u8>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.data.len() >= FULL_BYTES || self.entries.len() >= FULL_ENTRIES
    }
}

/// Where batches are stored.
struct Store {
    /// The disk's content, a sparse file.
    content: File,
    record: RecordWriter,
}

impl Store {
    fn write(&mut self, batch: &Batch) -> io::Result<()> {
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

/// A batch that was stored, and the record's length in bytes.
type Stored = io::Result<(Batch, u64)>;

struct Thread {
    to: Sender<Batch>,
    from: Receiver<Stored>,
    handle: JoinHandle<io::Result<()>>,
}

impl Thread {
    fn start(mut store: Store) -> Thread {
        let (to, batches) = channel::<Batch>();
        let (answers, from) = channel();
        let handle = spawn(move || {
            for batch in batches {
                let stored = store
                    .write(&batch)
                    .map(|()| (batch, store.record.written()));
                let has_failed = stored.is_err();
                // Without a receiver the recorder has ended.
                if answers.send(stored).is_err() || has_failed {
                    break;
                }
            }
            store.record.flush()
        });
        Thread { to, from, handle }
    }
}

/// A disk's content and its record, written by a thread.
pub struct WriterThread {
    /// For reads.
    content: File,
    /// Until the first batch is full. The thread starts no earlier, because the
    /// process that serves the disk first changes its mount namespace, which
    /// only a process with one thread may do (setns(2)).
    store: Option<Store>,
    thread: Option<Thread>,
    batch: Batch,
    queued: usize,
    written: u64,
}

impl WriterThread {
    /// `content` holds the disk, which is empty; `record` holds what it receives.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn new(content: File, record: RecordWriter) -> io::Result<WriterThread> {
        Ok(WriterThread {
            content: content.try_clone()?,
            written: record.written(),
            store: Some(Store { content, record }),
            thread: None,
            batch: Batch::default(),
            queued: 0,
        })
    }

    /// Bytes of the record at the last [`WriterThread::drain`].
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends an entry; `data` is what was written.
    ///
    /// # Errors
    /// An earlier entry could not be stored.
    pub fn append(&mut self, entry: Entry, data: &[u8]) -> io::Result<()> {
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
        let finished = || io::Error::other("the record is finished");
        let thread = self.thread.as_ref().ok_or_else(finished)?;
        let batch = std::mem::take(&mut self.batch);
        // A thread that has ended reported why: the next receive returns it.
        let _ = thread.to.send(batch);
        self.queued += 1;
        if self.queued == MAX_QUEUED {
            self.batch = self.receive()?;
        }
        Ok(())
    }

    /// Waits for the oldest queued batch; returns it empty.
    fn receive(&mut self) -> io::Result<Batch> {
        let ended = || io::Error::other("the thread that writes the record has ended");
        let thread = self.thread.as_ref().ok_or_else(ended)?;
        let (mut batch, written) = thread.from.recv().map_err(|_| ended())??;
        self.queued -= 1;
        self.written = written;
        batch.entries.clear();
        batch.data.clear();
        Ok(batch)
    }

    /// Waits until every entry is stored.
    ///
    /// # Errors
    /// One could not be.
    pub fn drain(&mut self) -> io::Result<()> {
        if !self.batch.entries.is_empty() {
            self.hand_over()?;
        }
        while self.queued > 0 {
            let batch = self.receive()?;
            self.batch = batch;
        }
        Ok(())
    }

    /// Fills the buffer from this offset of the disk.
    ///
    /// # Errors
    /// An entry could not be stored, or the content cannot be read.
    pub fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.drain()?;
        self.content.read_exact_at(buffer, offset)
    }

    /// Hands the record to its file. Nothing can be appended afterwards.
    ///
    /// # Errors
    /// An entry could not be stored.
    pub fn finish(&mut self) -> io::Result<()> {
        self.drain()?;
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
