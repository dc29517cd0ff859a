//! The records of a ring, as all readers of them see them (perf_event_open(2), "mmap layout").

/// What a record is (enum perf_event_type).
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const LOST_SAMPLES: u32 = 13;
/// A bit of `misc` of a COMM record: the name changed because of an exec.
pub const MISC_COMM_EXEC: u16 = 1 << 13;
/// Bytes at the end of each record other than a sample (`sample_id_all`): process, thread and time.
const ID_BYTES: usize = 16;

/// A record without its header.
pub struct Raw<'a> {
    /// What it is.
    pub kind: u32,
    /// Bits whose meaning depends on that.
    pub misc: u16,
    /// Its words.
    pub body: Words<'a>,
}

impl<'a> Raw<'a> {
    /// Time and words of a record other than a sample.
    pub fn timed(self) -> Option<(u64, Words<'a>)> {
        let body = self.body.0;
        let (body, id) = body.split_at_checked(body.len().checked_sub(ID_BYTES)?)?;
        Some((Words(&id[8..]).u64()?, Words(body)))
    }
}

/// Each record, up to the first whose length cannot be.
pub fn records(mut bytes: &[u8]) -> impl Iterator<Item = Raw<'_>> {
    std::iter::from_fn(move || {
        let mut header = Words(bytes.get(..8)?);
        let (kind, misc, size) = (header.u32()?, header.u16()?, header.u16()?);
        let body = Words(bytes.get(8..usize::from(size))?);
        bytes = &bytes[usize::from(size)..];
        Some(Raw { kind, misc, body })
    })
}

/// Bytes that are read from their beginning, in the machine's order.
pub struct Words<'a>(pub &'a [u8]);

impl<'a> Words<'a> {
    /// The next so many bytes.
    pub fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next number.
    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_ne_bytes(self.bytes(2)?.try_into().ok()?))
    }

    /// The next number.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    /// The next number.
    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    /// The bytes up to the first NUL.
    pub fn text(&self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        &self.0[..end.unwrap_or(self.0.len())]
    }
}
