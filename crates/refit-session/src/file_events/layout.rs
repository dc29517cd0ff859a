//! The structs as `durability/file_event.h` of refit-preload lays them out: see
//! [`crate::layout`].

/// First eight bytes of the file.
pub const MAGIC: u64 = 0x3165_6c69_6674_6672;
/// Events that the ring has room for.
pub const EVENTS: usize = 512;
/// Room for a path, in bytes.
pub const PATH: usize = 1024;
/// What is kept of a stack, in bytes.
pub const STACK: usize = 5880;
/// What is kept of an interpreter's functions, in bytes.
pub const SCRIPT: usize = 2040;

/// Bytes wait in a buffer of the C library.
pub const IN_STREAM: u32 = 1;
/// The write itself was synchronous.
pub const DURABLE: u32 = 2;
/// The sync does not wait.
pub const ASYNC: u32 = 4;
/// Two names were exchanged.
pub const EXCHANGED: u32 = 8;

/// A write to the file of `acknowledged` acknowledges; ...
pub const ACKNOWLEDGES_DESCRIPTOR: u32 = 1;
/// ... one to any socket does.
pub const ACKNOWLEDGES_SOCKET: u32 = 2;

#[repr(C)]
pub struct CFile {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub changed_ns: u64,
    pub links: u32,
    pub mode: u32,
}

#[repr(C)]
pub struct CDirectoryId {
    pub device: u64,
    pub inode: u64,
}

#[repr(C)]
pub struct CFileEvent {
    pub turn: u64,
    pub own_turn: u64,
    pub began: u64,
    pub image: u64,
    pub pid: u32,
    pub parent: u32,
    pub operation: u32,
    pub flags: u32,
    pub result: i32,
    pub descriptor: i32,
    pub open_flags: u32,
    pub pad: u32,
    pub file: CFile,
    pub other: CFile,
    pub directory: CDirectoryId,
    pub old_directory: CDirectoryId,
    pub at: u64,
    pub length: u64,
    pub instruction: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    pub stack_bytes: u64,
    pub script_bytes: u64,
    pub path: [u8; PATH],
    pub old_path: [u8; PATH],
    pub script: [u8; SCRIPT],
    pub stack: [u8; STACK],
}

#[repr(C)]
pub struct CFileEvents {
    pub magic: u64,
    pub events: u64,
    pub read: u64,
    pub syncs: u64,
    pub lost: u64,
    pub images: u64,
    pub is_given_up: u32,
    pub acknowledges: u32,
    pub acknowledged: CDirectoryId,
    pub pad: [u8; 4096 - 72],
    pub ring: [CFileEvent; EVENTS],
}
