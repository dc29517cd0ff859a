//! The record's entries, and how its file is laid out.

/// Disks are addressed by sectors of this many bytes.
pub const SECTOR: u64 = 512;
/// Longer writes become several entries.
pub const CHUNK: usize = 64 << 10;

/// The first bytes of the file.
pub const MAGIC: [u8; 8] = *b"refitcr1";
/// Magic, size of the disk, check sum of both, nothing.
pub const FILE_HEADER: usize = 24;
/// Kind, packing, 2 unused, stored bytes, offset, length, start, end, check sum, 4 unused.
pub const ENTRY_HEADER: usize = 48;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data.
    Write,
    /// Everything written before has to be durable (FLUSH, or a write with FUA).
    Flush,
    /// The range is no longer needed; it reads as zeroes afterwards.
    Discard,
    /// The range reads as zeroes afterwards.
    Zero,
}

impl Kind {
    /// Its number in the file.
    pub fn code(self) -> u8 {
        match self {
            Kind::Write => 1,
            Kind::Flush => 2,
            Kind::Discard => 3,
            Kind::Zero => 4,
        }
    }

    /// By that number.
    pub fn of_code(code: u8) -> Option<Kind> {
        [Kind::Write, Kind::Flush, Kind::Discard, Kind::Zero]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// One request that reached the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// First byte of the disk, a multiple of [`SECTOR`].
    pub offset: u64,
    /// Bytes, a multiple of [`SECTOR`]; 0 for a flush.
    pub length: u64,
    /// When the disk received it.
    pub start: u64,
    /// When the disk answered.
    pub end: u64,
}

impl Entry {
    /// First sector.
    #[must_use]
    pub fn sector(&self) -> u64 {
        self.offset / SECTOR
    }

    /// How many sectors.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.length / SECTOR
    }
}
