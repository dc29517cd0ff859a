//! The records of a perf ring (perf_event_open(2), "mmap layout").

use super::tracepoint::{Event, Tracepoint, event};

const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
/// Of a COMM record: the name changed because of an exec.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// Process, thread and time end each record other than a sample
/// (`sample_id_all`); time is its last word.
const TIME_BYTES: usize = 8;
const ID_BYTES: usize = 16;

/// What happened to a process (a thread group) and thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A new thread; of a new process where `process` is not `parent`.
    Forked { process: u32, parent: u32 },
    /// A thread ended.
    Ended { process: u32, thread: u32 },
    /// The process is another program from here on.
    Execed { process: u32 },
    /// A thread was named.
    Named {
        process: u32,
        thread: u32,
        name: String,
    },
    /// A file was mapped to be executed.
    Mapped { process: u32, path: String },
    Called {
        process: u32,
        thread: u32,
        event: Event,
    },
}

/// Each record with its time; what is of another kind is left out.
pub fn parse<'a>(
    mut bytes: &'a [u8],
    tracepoints: &'a [Tracepoint],
) -> impl Iterator<Item = (u64, Record)> + 'a {
    std::iter::from_fn(move || {
        loop {
            let size = usize::from(u16::from_ne_bytes(bytes.get(6..8)?.try_into().ok()?));
            if size < 8 {
                return None;
            }
            let (kind, misc) = (u32_at(bytes, 0)?, u32_at(bytes, 4)? as u16);
            let body = bytes.get(8..size)?;
            bytes = &bytes[size..];
            if let Some(record) = one(kind, misc, body, tracepoints) {
                return Some(record);
            }
        }
    })
}

fn one(kind: u32, misc: u16, body: &[u8], tracepoints: &[Tracepoint]) -> Option<(u64, Record)> {
    if kind == SAMPLE {
        let raw = body.get(20..)?;
        let called = Record::Called {
            process: u32_at(body, 0)?,
            thread: u32_at(body, 4)?,
            event: event(raw.get(..u32_at(body, 16)? as usize)?, tracepoints)?,
        };
        return Some((u64_at(body, 8)?, called));
    }
    if kind == LOST {
        return None;
    }
    let time = u64_at(body, body.len().checked_sub(TIME_BYTES)?)?;
    let body = &body[..body.len().checked_sub(ID_BYTES)?];
    let record = match kind {
        FORK => Record::Forked {
            process: u32_at(body, 0)?,
            parent: u32_at(body, 4)?,
        },
        EXIT => Record::Ended {
            process: u32_at(body, 0)?,
            thread: u32_at(body, 8)?,
        },
        COMM if misc & MISC_COMM_EXEC != 0 => Record::Execed {
            process: u32_at(body, 0)?,
        },
        COMM => Record::Named {
            process: u32_at(body, 0)?,
            thread: u32_at(body, 4)?,
            name: text(body.get(8..)?),
        },
        MMAP2 => Record::Mapped {
            process: u32_at(body, 0)?,
            path: text(body.get(64..)?),
        },
        _ => return None,
    };
    Some((time, record))
}

/// Up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
