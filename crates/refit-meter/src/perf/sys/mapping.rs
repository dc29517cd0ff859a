//! Memory that the kernel writes records to.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// A ring in memory that the kernel writes and we read.
pub struct Mapping {
    at: *mut u8,
    /// Bytes of the page before the records.
    page: usize,
    /// Of the records, after the first page.
    size: usize,
    read: Vec<u8>,
    was_full: bool,
}

/// No record is longer (struct perf_event_header has 16 bits for its size).
const LONGEST: usize = 1 << 16;

/// struct perf_event_mmap_page
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;

impl Mapping {
    /// `size`: a power of two pages.
    pub fn new(event: &OwnedFd, size: usize) -> io::Result<Mapping> {
        // SAFETY: takes a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(io::Error::other)?;
        // SAFETY: a new mapping of an open descriptor, at no fixed address.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping {
            at: at.cast(),
            page,
            size,
            read: Vec::new(),
            was_full: false,
        })
    }

    /// The records since the last time.
    pub fn read(&mut self) -> &[u8] {
        // SAFETY: the three words lie in the first page, aligned; the kernel and
        // we access head and tail atomically (perf_event_open(2)).
        let (head, tail, offset) = unsafe {
            (
                &*self.at.add(DATA_HEAD).cast::<AtomicU64>(),
                &*self.at.add(DATA_TAIL).cast::<AtomicU64>(),
                *self.at.add(DATA_OFFSET).cast::<u64>(),
            )
        };
        let (to, from) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let n = usize::try_from(to.wrapping_sub(from))
            .unwrap_or(0)
            .min(self.size);
        self.was_full |= n + LONGEST > self.size;
        let begin = from as usize & (self.size - 1);
        let first = n.min(self.size - begin);
        self.read.clear();
        self.read.reserve(n);
        // SAFETY: both parts lie within the ring; the kernel writes no byte
        // between tail and head until we have moved the tail.
        unsafe {
            let data = self.at.add(offset as usize);
            ptr::copy_nonoverlapping(data.add(begin), self.read.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, self.read.as_mut_ptr().add(first), n - first);
            self.read.set_len(n);
        }
        tail.store(to, Ordering::Release);
        &self.read
    }

    /// Whether there was a moment up to the last reading when a record may have
    /// found no room. Until we read, nothing leaves the ring, so its fullest was
    /// what we then found.
    pub fn was_full(&self) -> bool {
        self.was_full
    }

    /// Where it lies, and its length, for whoever unmaps it.
    pub fn into_raw(mut self) -> (*mut libc::c_void, usize) {
        drop(std::mem::take(&mut self.read));
        let raw = (self.at.cast(), self.page + self.size);
        std::mem::forget(self);
        raw
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and nothing refers to it.
        unsafe { libc::munmap(self.at.cast(), self.page + self.size) };
    }
}
