//! The records of a perf ring (perf_event_open(2), "mmap layout").

use super::tracepoint::{Event, Tracepoint, event};
use crate::perf::record::{COMM, EXIT, FORK, MISC_COMM_EXEC, MMAP2, Raw, SAMPLE, Words, records};

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
    bytes: &'a [u8],
    tracepoints: &'a [Tracepoint],
) -> impl Iterator<Item = (u64, Record)> + 'a {
    records(bytes).filter_map(|raw| match raw.kind {
        SAMPLE => called(raw.body, tracepoints),
        _ => other(raw),
    })
}

fn called(mut body: Words, tracepoints: &[Tracepoint]) -> Option<(u64, Record)> {
    let (process, thread, time) = (body.u32()?, body.u32()?, body.u64()?);
    let size = body.u32()? as usize;
    let called = Record::Called {
        process,
        thread,
        event: event(body.bytes(size)?, tracepoints)?,
    };
    Some((time, called))
}

fn other(raw: Raw) -> Option<(u64, Record)> {
    let (kind, misc) = (raw.kind, raw.misc);
    let (time, mut body) = raw.timed()?;
    let record = match kind {
        FORK => Record::Forked {
            process: body.u32()?,
            parent: body.u32()?,
        },
        EXIT => {
            let (process, _parent, thread) = (body.u32()?, body.u32()?, body.u32()?);
            Record::Ended { process, thread }
        }
        COMM if misc & MISC_COMM_EXEC != 0 => Record::Execed {
            process: body.u32()?,
        },
        COMM => Record::Named {
            process: body.u32()?,
            thread: body.u32()?,
            name: text(body.text()),
        },
        MMAP2 => {
            let process = body.u32()?;
            body.bytes(MAPPED_BYTES)?;
            Record::Mapped {
                process,
                path: text(body.text()),
            }
        }
        _ => return None,
    };
    Some((time, record))
}

/// Bytes of a mapping's record between its process and its path.
const MAPPED_BYTES: usize = 60;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
