//! `--trace-sync FILE`: one JSON line for each sync call, as it is made.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use refit_session::{Event, EventRing, Trace};
use serde::Serialize;

/// One line of the file.
#[derive(Serialize)]
struct Line<'a> {
    /// CLOCK_MONOTONIC at its end, nanoseconds.
    at_ns: u64,
    /// From call to return; `null` where only the kernel knows.
    took_ns: Option<u64>,
    pid: u32,
    executable: &'a str,
    call: &'a str,
    /// `real`, `suppressed` or `injected`.
    answer: &'a str,
    /// 0, or -errno; `null` where only the kernel knows.
    result: Option<i32>,
    /// `null` when unknown, or when the call is about no single file.
    path: Option<&'a str>,
}

/// Writes the traced calls to a file.
pub struct TraceFile<'a> {
    trace: Trace<'a>,
    to: BufWriter<File>,
    failed: Option<io::Error>,
}

impl<'a> TraceFile<'a> {
    /// A trace of every call, from the first one on.
    #[must_use]
    pub fn new(event_ring: &'a EventRing, file: File) -> Self {
        Self {
            trace: Trace::new(event_ring),
            to: BufWriter::new(file),
            failed: None,
        }
    }

    /// Writes what came since the last time.
    pub fn tick(&mut self) {
        let events = self.trace.drain();
        if !events.is_empty() {
            self.write(&events);
        }
    }

    /// Writes the rest. Returns how many calls are missing.
    ///
    /// # Errors
    /// Why the file is not complete.
    pub fn finish(mut self) -> io::Result<u64> {
        let (rest, lost) = self.trace.finish();
        self.write(&rest);
        self.failed.map_or(Ok(lost), Err)
    }

    fn write(&mut self, events: &[Event]) {
        if self.failed.is_none() {
            let written = events.iter().try_for_each(|event| self.line(event));
            self.failed = written.and_then(|()| self.to.flush()).err();
        }
    }

    fn line(&mut self, event: &Event) -> io::Result<()> {
        let line = Line {
            at_ns: event.at_ns,
            took_ns: event.result.map(|_| event.took_ns),
            pid: event.pid,
            executable: &event.executable,
            call: event.call,
            answer: event.answer,
            result: event.result,
            path: Some(event.path.as_str()).filter(|path| !path.is_empty()),
        };
        serde_json::to_writer(&mut self.to, &line)?;
        self.to.write_all(b"\n")
    }
}
