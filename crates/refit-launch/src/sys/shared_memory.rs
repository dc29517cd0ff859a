//! Memory that refit and its guardian share: what is under way, and what was
//! counted. Made before the guardian is forked, and gone with the last of them.

use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use refit_session::CALLS;

/// Calls under way at once; the last slot is for those that find no other.
pub const SLOTS: usize = 257;
/// Executables that are told apart; the last one stands for all others.
pub const EXECUTABLES: usize = 128;
/// Threads and processes that are remembered as seen.
pub const SEEN: usize = 1 << 15;
/// Bytes of a path.
pub const PATH: usize = 256;
/// Room for a struct seccomp_notif, which may grow (SECCOMP_GET_NOTIF_SIZES).
pub const NOTIFICATION: usize = 256;

/// One call that waits for its answer.
#[repr(C)]
pub struct Slot {
    /// As the kernel wrote it, all zeros when the slot is free: SECCOMP_IOCTL_
    /// NOTIF_RECV writes here, so that an id that was received is on record
    /// whatever happens to the receiver.
    pub notification: [AtomicU64; NOTIFICATION / 8],
    /// CLOCK_MONOTONIC, ns, when it came.
    pub since_ns: AtomicU64,
    /// The pid of who opens a file for it, 0: nobody (`guardian/opener.rs`).
    pub opener: AtomicU32,
    /// 1 + the index of its executable, 0: it was not counted yet.
    pub executable: AtomicU32,
    /// The program's descriptor of the file that was opened for it.
    pub descriptor: AtomicI32,
}

/// Counters of one kind of call, as in the session page.
#[repr(C)]
#[derive(Default)]
pub struct Counter {
    /// Calls that came.
    pub seen: AtomicU64,
    /// Answered with 0.
    pub suppressed: AtomicU64,
    /// Let through.
    pub real: AtomicU64,
    /// Nanoseconds that they were held.
    pub waited_ns: AtomicU64,
    /// Failed by the emulated disk.
    pub injected: AtomicU64,
}

/// What one executable did.
#[repr(C)]
pub struct Executable {
    /// 0 free, 2 in use. Only the active process of the guardian writes.
    pub state: AtomicU32,
    /// Bytes of the path.
    pub length: AtomicU32,
    /// Its path as refit sees it.
    pub path: [AtomicU64; PATH / 8],
    /// Processes that made such a call.
    pub processes: AtomicU64,
    /// In the order of [`CALLS`].
    pub calls: [Counter; CALLS.len()],
}

/// All of it; all zeros at the start.
#[repr(C)]
pub struct Shared {
    /// Calls under way.
    pub slots: [Slot; SLOTS],
    /// By executable.
    pub executables: [Executable; EXECUTABLES],
    /// A set: thread or process, executable.
    pub seen: [AtomicU64; SEEN],
    /// Bit i: rule i decided a call.
    pub matched: AtomicU64,
    /// Calls that were real as nobody could tell the file.
    pub path_unknown: AtomicU64,
    /// Opens whose writes pass the emulated disk by.
    pub not_delayed: AtomicU64,
    /// Opens that stayed synchronous, as they could not be done exactly.
    pub left_synchronous: AtomicU64,
    /// Calls that found no slot, and were real.
    pub crowded: AtomicU64,
    /// Times that one process of the guardian took over from the other.
    pub takeovers: AtomicU64,
    /// Calls that were received and not answered when that happened.
    pub released: AtomicU64,
    /// Programs that wanted a listener of their own.
    pub listeners_refused: AtomicU64,
    /// A program restricted its own access to files: opens are left alone.
    pub landlocked: AtomicU64,
}

/// The mapping.
pub struct GuardianMemory(NonNull<Shared>);

impl GuardianMemory {
    /// Makes it. The slots are there at once: the kernel must never have to wait
    /// for memory between taking a call and writing its id down.
    pub fn new() -> io::Result<GuardianMemory> {
        let length = size_of::<Shared>();
        // SAFETY: a new anonymous mapping, of a size that is not 0.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = GuardianMemory(NonNull::new(at.cast()).expect("the kernel maps nothing at 0"));
        for slot in &memory.slots {
            slot.since_ns.store(0, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(memory)
    }
}

impl Deref for GuardianMemory {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        // SAFETY: the mapping has the size of a Shared, whose fields are all
        // atomic integers, for which zeros and whatever other processes store
        // are valid; it stays until drop.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for GuardianMemory {
    fn drop(&mut self) {
        // SAFETY: nobody borrows it any more; other processes keep theirs.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Shared>()) };
    }
}
