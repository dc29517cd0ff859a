//! What processes do to files, event by event, as the durability library tells it.

pub(crate) mod layout;

use std::mem::{offset_of, size_of};

use layout::{CDirectoryId, CFile, CFileEvent};

use crate::ScriptFunction;
use crate::layout::{get_text, get_u32, get_u64};
pub use layout::{ASYNC, DURABLE, EXCHANGED, IN_STREAM};

pub use crate::sys::file_ring::{Acknowledges, FileRing};

/// Size of one event in bytes.
pub const EVENT_SIZE: usize = size_of::<CFileEvent>();

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Nothing: the code of a process is listed.
    Image,
    /// A file was opened to be written, or made.
    Opened,
    /// It was written to.
    Wrote,
    /// Its size was set.
    Resized,
    /// It got another name.
    Renamed,
    /// It got a further name.
    Linked,
    /// Something else than a file was made.
    Made,
    /// A name was removed.
    Removed,
    /// fsync(2).
    Synced,
    /// fdatasync(2).
    DataSynced,
    /// sync(2).
    AllSynced,
    /// syncfs(2).
    FileSystemSynced,
    /// sync_file_range(2).
    RangeSynced,
    /// It was mapped, shared and to be written.
    Mapped,
    /// msync(2).
    MapSynced,
    /// Its times were set.
    Timed,
    /// Something was acknowledged.
    Acknowledged,
}

/// In the order of `enum refit_file_operation`, with the names that it has there.
pub(crate) const OPERATIONS: [(&str, Operation); 17] = [
    ("IMAGE", Operation::Image),
    ("OPENED", Operation::Opened),
    ("WROTE", Operation::Wrote),
    ("RESIZED", Operation::Resized),
    ("RENAMED", Operation::Renamed),
    ("LINKED", Operation::Linked),
    ("MADE", Operation::Made),
    ("REMOVED", Operation::Removed),
    ("SYNCED", Operation::Synced),
    ("DATA_SYNCED", Operation::DataSynced),
    ("ALL_SYNCED", Operation::AllSynced),
    ("FS_SYNCED", Operation::FileSystemSynced),
    ("RANGE_SYNCED", Operation::RangeSynced),
    ("MAPPED", Operation::Mapped),
    ("MAP_SYNCED", Operation::MapSynced),
    ("TIMED", Operation::Timed),
    ("ACKNOWLEDGED", Operation::Acknowledged),
];

/// Device and inode of a file or directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// st_dev, stat(2).
    pub device: u64,
    /// st_ino; 0: there is none.
    pub inode: u64,
}

/// A file as stat(2) had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Which one.
    pub id: FileId,
    /// Bytes.
    pub size: u64,
    /// st_mtim in nanoseconds.
    pub changed_ns: u64,
    /// Names that it has.
    pub links: u32,
    /// st_mode.
    pub mode: u32,
}

impl FileFacts {
    /// Whether there is such a file.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.id.inode != 0
    }

    /// A regular file.
    #[must_use]
    pub fn is_regular(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFREG
    }

    /// A directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.mode & libc::S_IFMT == libc::S_IFDIR
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// Its number in the whole run, from 0 on, in the order in which calls ended.
    pub number: u64,
    /// Of a sync, a rename or a removal: this many events there were when it began.
    pub began: u64,
    /// The exec'ed image that the process is of.
    pub image: u64,
    /// As the process saw it.
    pub pid: u32,
    /// Of the process that started it, or that it was left to.
    pub parent: u32,
    /// What was done.
    pub operation: Operation,
    /// [`layout`] has the bits.
    pub flags: u32,
    /// 0 or more, or -errno.
    pub result: i32,
    /// -1: none.
    pub descriptor: i32,
    /// Those of open(2).
    pub open_flags: i32,
    /// The file that it is about: of a sync, a rename or a removal before the call, else after it.
    pub file: FileFacts,
    /// What had the name, or what the file was, before it.
    pub other: FileFacts,
    /// Of the (new) name.
    pub directory: FileId,
    /// Of the old name.
    pub old_directory: FileId,
    /// A size, or an address.
    pub at: u64,
    /// Bytes.
    pub length: u64,
    /// Instruction, stack pointer and frame pointer; 0: there is no stack.
    pub registers: [u64; 3],
    /// The (new) path; of [`Operation::Image`] the executable's.
    pub path: String,
    /// The old path.
    pub old_path: String,
    /// What lies at the stack pointer and above; of [`Operation::Image`] lines of /proc/PID/maps.
    pub stack: Vec<u8>,
    /// Functions of an interpreter that made the call, the innermost first.
    pub script: Vec<ScriptFunction>,
}

impl FileEvent {
    /// Whether a bit of [`layout`] is set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Reads one event of the ring; `None` when it cannot be one.
    pub(crate) fn parse(number: u64, bytes: &[u8]) -> Option<FileEvent> {
        let operation = get_u32(bytes, offset_of!(CFileEvent, operation));
        let (_, operation) = *OPERATIONS.get(operation as usize)?;
        let signed = |at| i32::from_ne_bytes(get_u32(bytes, at).to_ne_bytes());
        let u64_at = |at| get_u64(bytes, at);
        let stack_at = offset_of!(CFileEvent, stack);
        let kept = |at, most: usize| usize::try_from(u64_at(at)).map_or(0, |kept| kept.min(most));
        let stack_bytes = kept(offset_of!(CFileEvent, stack_bytes), layout::STACK);
        let script_at = offset_of!(CFileEvent, script);
        let script_bytes = kept(offset_of!(CFileEvent, script_bytes), layout::SCRIPT);
        Some(FileEvent {
            number,
            began: u64_at(offset_of!(CFileEvent, began)).min(number),
            image: u64_at(offset_of!(CFileEvent, image)),
            pid: get_u32(bytes, offset_of!(CFileEvent, pid)),
            parent: get_u32(bytes, offset_of!(CFileEvent, parent)),
            operation,
            flags: get_u32(bytes, offset_of!(CFileEvent, flags)),
            result: signed(offset_of!(CFileEvent, result)),
            descriptor: signed(offset_of!(CFileEvent, descriptor)),
            open_flags: signed(offset_of!(CFileEvent, open_flags)),
            file: facts(bytes, offset_of!(CFileEvent, file)),
            other: facts(bytes, offset_of!(CFileEvent, other)),
            directory: id(bytes, offset_of!(CFileEvent, directory)),
            old_directory: id(bytes, offset_of!(CFileEvent, old_directory)),
            at: u64_at(offset_of!(CFileEvent, at)),
            length: u64_at(offset_of!(CFileEvent, length)),
            registers: [
                u64_at(offset_of!(CFileEvent, instruction)),
                u64_at(offset_of!(CFileEvent, stack_pointer)),
                u64_at(offset_of!(CFileEvent, frame_pointer)),
            ],
            path: get_text(bytes, offset_of!(CFileEvent, path), layout::PATH),
            old_path: get_text(bytes, offset_of!(CFileEvent, old_path), layout::PATH),
            stack: bytes[stack_at..stack_at + stack_bytes].to_vec(),
            script: ScriptFunction::parse(&bytes[script_at..script_at + script_bytes]),
        })
    }
}

fn id(bytes: &[u8], at: usize) -> FileId {
    FileId {
        device: get_u64(bytes, at + offset_of!(CDirectoryId, device)),
        inode: get_u64(bytes, at + offset_of!(CDirectoryId, inode)),
    }
}

fn facts(bytes: &[u8], at: usize) -> FileFacts {
    FileFacts {
        id: FileId {
            device: get_u64(bytes, at + offset_of!(CFile, device)),
            inode: get_u64(bytes, at + offset_of!(CFile, inode)),
        },
        size: get_u64(bytes, at + offset_of!(CFile, size)),
        changed_ns: get_u64(bytes, at + offset_of!(CFile, changed_ns)),
        links: get_u32(bytes, at + offset_of!(CFile, links)),
        mode: get_u32(bytes, at + offset_of!(CFile, mode)),
    }
}
