//! The ring of events about files: a file in the session, which every process of the run writes.

use std::fs::{File, Permissions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rustix::fs::{FallocateFlags, fallocate};

use crate::file_events::layout::{
    ACKNOWLEDGES_DESCRIPTOR, ACKNOWLEDGES_SOCKET, CDirectoryId, CFileEvent, CFileEvents, EVENTS,
    MAGIC,
};
use crate::file_events::{EVENT_SIZE, FileEvent, FileId};

const SIZE: usize = size_of::<CFileEvents>();
const RING: usize = offset_of!(CFileEvents, ring);
/// Its name in the session.
const NAME: &str = "file-events";

/// Which calls acknowledge something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledges {
    /// A write to this file.
    pub file: Option<FileId>,
    /// A write to any socket.
    pub sockets: bool,
}

/// The ring of one run.
#[derive(Debug)]
pub struct FileRing {
    at: *mut libc::c_void,
    next: u64,
    lost: u64,
}

// SAFETY: the mapping is the value's own, and is accessed atomically or as volatile.
unsafe impl Send for FileRing {}

impl FileRing {
    /// Makes an empty one in a session's directory. All of its memory is allocated: a process that wrote to a page
    /// that cannot be had would be killed. Every process that can enter the directory may write to it.
    ///
    /// # Errors
    /// The kernel's; ENOSPC where the file system has no room for 4 MiB.
    pub fn create(session: &Path, acknowledges: Acknowledges) -> io::Result<FileRing> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(session.join(NAME))?;
        fallocate(&file, FallocateFlags::empty(), 0, SIZE as u64)?;
        let ring = FileRing::map(&file)?;
        ring.acknowledge(acknowledges);
        // 0 and 1 say something else of a descriptor.
        let syncs = ring.word(offset_of!(CFileEvents, syncs));
        syncs.store(2, Ordering::Relaxed);
        let magic = ring.word(offset_of!(CFileEvents, magic));
        magic.store(MAGIC, Ordering::Release);
        file.set_permissions(Permissions::from_mode(0o666))?;
        Ok(ring)
    }

    /// Says which calls acknowledge something. For before the program starts.
    pub fn acknowledge(&self, acknowledges: Acknowledges) {
        let id = acknowledges.file.unwrap_or_default();
        let acknowledged = offset_of!(CFileEvents, acknowledged);
        for (at, value) in [
            (offset_of!(CDirectoryId, device), id.device),
            (offset_of!(CDirectoryId, inode), id.inode),
        ] {
            self.word(acknowledged + at).store(value, Ordering::Relaxed);
        }
        let how = [
            (acknowledges.file.is_some(), ACKNOWLEDGES_DESCRIPTOR),
            (acknowledges.sockets, ACKNOWLEDGES_SOCKET),
        ];
        let how: u32 = how.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum();
        self.half(offset_of!(CFileEvents, acknowledges))
            .store(how, Ordering::Relaxed);
    }

    fn map(file: &File) -> io::Result<FileRing> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping of its own, at an address that the kernel chooses; the file is as long.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SIZE,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(FileRing {
            at,
            next: 0,
            lost: 0,
        })
    }

    /// What was told since the last time, in its order, but for no more than the ring holds. An event that is just being
    /// written waits for the next time, and so does what came after it; with `is_last` nothing is waited for.
    pub fn take(&mut self, is_last: bool) -> Vec<FileEvent> {
        let end = self
            .word(offset_of!(CFileEvents, events))
            .load(Ordering::Acquire);
        // A scribbled number must not keep us here.
        let end = end.min(self.next.saturating_add(EVENTS as u64));
        let mut events = Vec::new();
        while self.next < end {
            match self.event(self.next) {
                Some(event) => events.extend(event),
                None if is_last => self.lost += 1,
                None => break,
            }
            self.next += 1;
        }
        self.word(offset_of!(CFileEvents, read))
            .store(self.next, Ordering::Release);
        events
    }

    /// Passes over an event that its process never finished.
    pub fn pass_over(&mut self) {
        self.next += 1;
        self.lost += 1;
    }

    /// Number of the event that comes next, and whether some process has begun it.
    #[must_use]
    pub fn awaited(&self) -> Option<u64> {
        let end = self
            .word(offset_of!(CFileEvents, events))
            .load(Ordering::Acquire);
        (self.next < end).then_some(self.next)
    }

    /// Events that nobody could read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let lost = self.word(offset_of!(CFileEvents, lost));
        self.lost.saturating_add(lost.load(Ordering::Relaxed))
    }

    /// How many exec'ed images write to it.
    #[must_use]
    pub fn images(&self) -> u64 {
        let images = self.word(offset_of!(CFileEvents, images));
        images.load(Ordering::Relaxed)
    }

    /// `None`: it is not yet written. `Some(None)`: it is none.
    fn event(&self, number: u64) -> Option<Option<FileEvent>> {
        let place = usize::try_from(number % EVENTS as u64).ok()?;
        let offset = RING + place * EVENT_SIZE;
        let turn = self.word(offset + offset_of!(CFileEvent, turn));
        if turn.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        let mut bytes = [0; EVENT_SIZE];
        let words = bytes.chunks_exact_mut(8);
        for (at, word) in words.enumerate() {
            // SAFETY: offset + 8 * at lies in the mapping, which stays as long as self; others may write it, so it is
            // read as volatile.
            let read = unsafe {
                let begin = self.at.cast::<u8>().add(offset).cast::<u64>();
                begin.add(at).read_volatile()
            };
            word.copy_from_slice(&read.to_ne_bytes());
        }
        fence(Ordering::Acquire);
        Some(FileEvent::parse(number, &bytes))
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= SIZE && offset.is_multiple_of(8));
        // SAFETY: in the mapping, aligned, and only ever accessed atomically on both sides.
        unsafe { AtomicU64::from_ptr(self.at.cast::<u8>().add(offset).cast()) }
    }

    fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= SIZE && offset.is_multiple_of(4));
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.at.cast::<u8>().add(offset).cast()) }
    }
}

impl Drop for FileRing {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.at, SIZE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> (tempfile::TempDir, FileRing) {
        let directory = tempfile::tempdir().unwrap();
        let ring = FileRing::create(directory.path(), Acknowledges::default()).unwrap();
        (directory, ring)
    }

    #[test]
    fn an_empty_ring_has_no_events() {
        let (_directory, mut ring) = ring();
        assert_eq!(
            (ring.take(true), ring.lost(), ring.images()),
            (vec![], 0, 0)
        );
    }

    #[test]
    fn a_ring_of_random_words_is_read_and_ends() {
        let (_directory, mut ring) = ring();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for at in (0..SIZE).step_by(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ring.word(at).store(state, Ordering::Relaxed);
        }
        for turn in 0..EVENTS as u64 {
            let offset = RING + turn as usize * EVENT_SIZE;
            ring.word(offset).store(turn + 1, Ordering::Relaxed);
            // Half of them are an operation.
            let operation = offset + offset_of!(CFileEvent, operation);
            ring.half(operation)
                .store(turn as u32 % 34, Ordering::Relaxed);
        }
        let events = ring.take(true);
        assert!(events.len() >= EVENTS / 2);
        let texts = events.iter().map(|event| &event.path);
        assert!(
            texts
                .flat_map(|text| text.chars())
                .all(|one| !one.is_control())
        );
    }

    #[test]
    fn an_event_that_is_not_finished_is_waited_for() {
        let (_directory, mut ring) = ring();
        ring.word(offset_of!(CFileEvents, events))
            .store(1, Ordering::Relaxed);
        assert_eq!((ring.take(false), ring.awaited()), (vec![], Some(0)));
        ring.word(RING).store(1, Ordering::Relaxed);
        assert_eq!(ring.take(false).len(), 1);
        assert_eq!(ring.awaited(), None);
    }
}
