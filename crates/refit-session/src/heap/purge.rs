//! Requests for a twin of a process: see `heap/twin.c` of refit-preload. The only words of a heap file that refit writes.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::file::block_at;
use super::layout::{CProcess, CTwin, TWIN_PURGED, TWIN_READY, TWIN_REFUSED};
use crate::layout::{get_text, get_u32, get_u64};

/// A request; withdrawn when it is dropped, and then the twin ends.
#[derive(Debug)]
pub struct TwinRequest {
    file: File,
    at: u64,
    number: u32,
}

/// What has become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TwinState {
    /// Nothing yet.
    Unmade,
    /// The twin of this pid waits for [`TwinRequest::purge`].
    Ready(u32),
    /// Its allocator has given back what it can.
    Purged,
    /// There is none, or not any more, and why.
    Refused(String),
}

impl TwinRequest {
    /// Asks the process that has the block of this number.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn new(file: &File, block: usize) -> io::Result<TwinRequest> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        // What is open for reading, and no other file of its name.
        let place = format!("/proc/self/fd/{}", file.as_raw_fd());
        let request = TwinRequest {
            file: File::options().read(true).write(true).open(place)?,
            at: block_at(block) + offset_of!(CProcess, twin) as u64,
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
        };
        request.write(offset_of!(CTwin, asked), request.number)?;
        Ok(request)
    }

    /// Has the twin purge.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn purge(&self) -> io::Result<()> {
        self.write(offset_of!(CTwin, purge), self.number)
    }

    /// What has become of it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state(&self) -> io::Result<TwinState> {
        let mut twin = [0; size_of::<CTwin>()];
        self.file.read_exact_at(&mut twin, self.at)?;
        let state = get_u64(&twin, offset_of!(CTwin, state));
        let state = state.wrapping_sub(u64::from(self.number) << 32);
        Ok(match u32::try_from(state) {
            Ok(TWIN_READY) => TwinState::Ready(get_u32(&twin, offset_of!(CTwin, pid))),
            Ok(TWIN_PURGED) => TwinState::Purged,
            Ok(TWIN_REFUSED) => TwinState::Refused(get_text(&twin, offset_of!(CTwin, why), 64)),
            _ => TwinState::Unmade,
        })
    }

    fn write(&self, field: usize, number: u32) -> io::Result<()> {
        let at = self.at + field as u64;
        self.file.write_all_at(&number.to_ne_bytes(), at)
    }
}

impl Drop for TwinRequest {
    fn drop(&mut self) {
        // A file that cannot be written any more is nobody's.
        let _ = self.write(offset_of!(CTwin, asked), 0);
    }
}
