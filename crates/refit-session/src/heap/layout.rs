//! The structs as `heap/heap_page.h` of refit-preload lays them out: see
//! [`crate::layout`].

/// First eight bytes of a heap file.
pub const MAGIC: u64 = 0x3170_6165_6874_6672;
/// What a header, a process and a slot have, in bytes.
pub const PAGE: usize = 4096;
/// Bytes of the largest page that a kernel has.
pub const LARGEST_PAGE: usize = 65536;
/// Size classes.
pub const CLASSES: usize = 126;
/// Slots of a process.
pub const SLOTS: usize = 31;
/// Processes of an image.
pub const PROCESSES: usize = 256;
/// Regions of the library's own memory.
pub const REGIONS: usize = 24;
/// Samples of an image.
pub const SAMPLES: usize = 1024;
/// What is kept of a stack, in bytes.
pub const STACK: usize = 16320;
/// What is kept of an interpreter's functions, in bytes.
pub const SCRIPT: usize = 2040;
/// Room for the lines of /proc/PID/maps, in bytes.
pub const OBJECTS: usize = 65536;
/// One in so many bytes is a sample, at first.
#[cfg(test)]
pub const INTERVAL: u64 = 512 << 10;
/// Classes of 8 bytes each.
pub const FINE_CLASSES: usize = 64;
/// The largest request of those.
pub const FINE_BYTES: u64 = 512;
/// How far a peak may be off, for each thread, in bytes; ...
#[cfg(test)]
pub const LAG: u64 = 4096;
/// ... or one in so many of those that are live; ...
#[cfg(test)]
pub const LAG_SHARE: u64 = 128;
/// ... but not more than this.
#[cfg(test)]
pub const LAG_MOST: u64 = 32768;
/// Requests of fewer bytes may be counted by their exact size.
pub const SMALL: usize = 1024;
/// None of this size was counted.
#[cfg(test)]
pub const SMALL_UNKNOWN: u16 = 0xffff;
/// What a free adds to a count of a small size; an allocation adds 1.
pub const SMALL_FREE: u64 = 1 << 32;

/// The forked copy waits until refit tells it to purge ...
pub const PURGE_READY: u32 = 1;
/// ... and it has; ...
pub const PURGE_DONE: u32 = 2;
/// ... or there is none.
pub const PURGE_REFUSED: u32 = 3;

/// The program has a malloc of its own, which goes before a preloaded one.
pub const OTHER_MALLOC: u32 = 1;
/// The allocator does not tell how much of a block is usable.
pub const NO_USABLE: u32 = 2;
/// The address space is limited.
pub const LIMITED: u32 = 4;
/// The kernel cannot wipe a page at fork.
pub const OLD_KERNEL: u32 = 8;
/// C++ operators of the allocator's own were not counted.
pub const NEW_UNSEEN: u32 = 16;
/// There is no table of live blocks.
pub const NO_TABLE: u32 = 32;
/// Counting ended when the program lacked memory.
pub const GAVE_UP: u32 = 64;

#[repr(C)]
pub struct CClass {
    pub allocations: u64,
    pub frees: u64,
    pub requested: u64,
    pub usable: u64,
}

#[repr(C)]
pub struct CSlot {
    pub is_shared: u64,
    pub allocated: u64,
    pub pending_requested: u64,
    pub pending_usable: u64,
    pub pending_blocks: u64,
    pub sample_at: u64,
    pub sample_interval: u64,
    pub given: u64,
    pub classes: [CClass; CLASSES],
}

#[repr(C)]
pub struct CSmallSizes {
    pub usable: [u16; SMALL],
    pub pad: [u16; SMALL],
    pub counts: [[u64; SMALL]; SLOTS],
}

#[repr(C)]
pub struct CSize {
    pub requested: u64,
    pub usable: u64,
    pub blocks: u64,
}

#[repr(C)]
pub struct CRegion {
    pub at: u64,
    pub size: u64,
}

#[repr(C)]
pub struct CPurge {
    pub asked: u32,
    pub purge: u32,
    pub pid: u32,
    pub pad: u32,
    pub state: u64,
    pub why: [u8; 64],
}

#[repr(C)]
pub struct CProcess {
    pub pid: u32,
    pub forked: u32,
    pub slots_used: u64,
    pub inherited: u64,
    pub unknown_frees: u64,
    pub untracked: u64,
    pub vanished: u64,
    pub small_slots: u64,
    pub live: CSize,
    pub peak: CSize,
    pub most_slack: [u64; CLASSES],
    pub regions: [CRegion; REGIONS],
    pub purge: CPurge,
}

#[repr(C)]
pub struct CEnded {
    pub processes: u64,
    pub allocations: u64,
    pub frees: u64,
    pub allocated: u64,
    pub live: CSize,
    pub peak: CSize,
}

#[repr(C)]
pub struct CHeader {
    pub magic: u64,
    pub flags: u32,
    pub lost: u32,
    pub forked: u64,
    pub ended: CEnded,
    pub executable: [u8; 256],
    pub malloc_object: [u8; 256],
    pub shadow: u64,
}

#[repr(C)]
pub struct CSample {
    pub is_complete: u64,
    pub requested: u64,
    pub usable: u64,
    pub interval: u64,
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    pub stack_bytes: u64,
    pub script_bytes: u64,
    pub script: [u8; SCRIPT],
    pub stack: [u8; STACK],
}

#[repr(C)]
pub struct CSamples {
    pub interval: u64,
    pub lost: u64,
    pub is_listing: u64,
    pub objects_bytes: u64,
    pub owner: [u32; SAMPLES],
    pub pad: [u8; 4064],
    pub objects: [u8; OBJECTS],
    pub sample: [CSample; SAMPLES],
}
