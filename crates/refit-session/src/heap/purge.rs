//! Requests for a forked copy of a process: see `heap/purge.c` of refit-preload. The only words of a heap file that refit
//! writes.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::file::block_at;
use super::layout::{CProcess, CPurge, PURGE_DONE, PURGE_READY, PURGE_REFUSED};
use crate::layout::{get_text, get_u32, get_u64};

/// A request; withdrawn when it is dropped, and then the copy ends.
#[derive(Debug)]
pub struct PurgeRequest {
    file: File,
    at: u64,
    number: u32,
}

/// What has become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeState {
    /// Nothing yet.
    Unmade,
    /// The copy of this pid waits for [`PurgeRequest::purge`].
    Ready(u32),
    /// Its allocator has given back what it can.
    Purged,
    /// There is none, or not any more, and why.
    Refused(String),
}

impl PurgeRequest {
    /// Asks the process that has the block of this number.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(file: &File, block: usize) -> io::Result<PurgeRequest> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        // What is open for reading, and no other file of its name.
        let place = format!("/proc/self/fd/{}", file.as_raw_fd());
        let request = PurgeRequest {
            file: File::options().read(true).write(true).open(place)?,
            at: block_at(block) + offset_of!(CProcess, purge) as u64,
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
        };
        request.write(offset_of!(CPurge, asked), request.number)?;
        Ok(request)
    }

    /// Has the copy purge.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn purge(&self) -> io::Result<()> {
        self.write(offset_of!(CPurge, purge), self.number)
    }

    /// What has become of it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state(&self) -> io::Result<PurgeState> {
        let mut copy = [0; size_of::<CPurge>()];
        self.file.read_exact_at(&mut copy, self.at)?;
        let state = get_u64(&copy, offset_of!(CPurge, state));
        let state = state.wrapping_sub(u64::from(self.number) << 32);
        Ok(match u32::try_from(state) {
            Ok(PURGE_READY) => PurgeState::Ready(get_u32(&copy, offset_of!(CPurge, pid))),
            Ok(PURGE_DONE) => PurgeState::Purged,
            Ok(PURGE_REFUSED) => PurgeState::Refused(get_text(&copy, offset_of!(CPurge, why), 64)),
            _ => PurgeState::Unmade,
        })
    }

    fn write(&self, field: usize, number: u32) -> io::Result<()> {
        let at = self.at + field as u64;
        self.file.write_all_at(&number.to_ne_bytes(), at)
    }
}

impl Drop for PurgeRequest {
    fn drop(&mut self) {
        // A file that cannot be written any more is nobody's.
        let _ = self.write(offset_of!(CPurge, asked), 0);
    }
}
