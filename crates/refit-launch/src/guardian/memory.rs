//! What the processes of a guardian share with refit: the calls under way, and
//! what was counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::tally::TallyMemory;
use crate::sys::notify::Slot;
use crate::sys::shared_memory::{SharedMemory, shared};

/// Calls under way at once; the last slot is for those that find no other.
pub const SLOTS: usize = 257;

shared! {
    /// All of it.
    pub struct GuardianMemory {
        /// Calls under way.
        pub slots: [Slot; SLOTS],
        /// What was counted.
        pub tally: TallyMemory,
        /// Counts what the active process did: the standby sees by it that it answers.
        pub steps: AtomicU64,
        /// A program restricted its own access to files: opens are left alone.
        pub landlocked: AtomicU64,
    }
}

/// Makes it. The slots are there at once: the kernel must never have to wait for
/// memory between the receipt of a call and the storing of its id.
pub fn guardian_memory() -> io::Result<SharedMemory<GuardianMemory>> {
    let memory = SharedMemory::<GuardianMemory>::new()?;
    for slot in &memory.slots {
        slot.since_ns.store(0, Relaxed);
    }
    Ok(memory)
}
