//! The event ring: what traced calls write there for refit to read.

use std::mem::{offset_of, size_of};

use rustix::time::{ClockId, clock_gettime};

use crate::layout::{CEvent, CEventRing, field_size, get_text, get_u32, get_u64, put};
use crate::page::{ANSWERS, CALLS};

/// Size of the event ring in bytes, the state of the emulated disk included.
pub const RING_SIZE: usize = size_of::<CEventRing>();
/// Where the number of events so far is.
pub const RING_WRITTEN: usize = offset_of!(CEventRing, events);
/// Where the events begin.
pub const RING_ENTRIES: usize = offset_of!(CEventRing, ring);
/// Size of one event in bytes.
pub const EVENT_SIZE: usize = size_of::<CEvent>();

/// CLOCK_MONOTONIC in nanoseconds, by which calls are timed.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// One traced call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// 1 + its number in the whole trace; 0: not yet written.
    pub turn: u64,
    /// CLOCK_MONOTONIC at its end, nanoseconds.
    pub at_ns: u64,
    /// Nanoseconds from call to return.
    pub took_ns: u64,
    /// As the process saw it.
    pub pid: u32,
    /// One of [`CALLS`].
    pub call: &'static str,
    /// `real`, `suppressed` or `injected`.
    pub answer: &'static str,
    /// 0, or -errno; `None`: the kernel's, which refit did not see.
    pub result: Option<i32>,
    /// Basename of the executable.
    pub executable: String,
    /// The (end of the) file's path; empty when unknown or none.
    pub path: String,
}

const EXECUTABLE_SIZE: usize = field_size(|event: &CEvent| &event.executable);
const PATH_SIZE: usize = field_size(|event: &CEvent| &event.path);

/// In place of a result that refit did not see.
const UNSEEN: i32 = i32::MIN;

impl Event {
    /// As the ring holds it, but for its turn, which is written last.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; EVENT_SIZE] {
        let mut bytes = [0; EVENT_SIZE];
        put(
            &mut bytes,
            offset_of!(CEvent, at_ns),
            &self.at_ns.to_ne_bytes(),
        );
        put(
            &mut bytes,
            offset_of!(CEvent, took_ns),
            &self.took_ns.to_ne_bytes(),
        );
        put(&mut bytes, offset_of!(CEvent, pid), &self.pid.to_ne_bytes());
        let index = |names: &[&str], name| names.iter().position(|known| *known == name);
        for (at, index) in [
            (offset_of!(CEvent, call), index(&CALLS, self.call)),
            (offset_of!(CEvent, answer), index(&ANSWERS, self.answer)),
        ] {
            // What is in neither table cannot be read again either.
            let number = index.map_or(u32::MAX, |index| index as u32);
            put(&mut bytes, at, &number.to_ne_bytes());
        }
        let result = self.result.unwrap_or(UNSEEN);
        put(
            &mut bytes,
            offset_of!(CEvent, result),
            &result.to_ne_bytes(),
        );
        for (at, size, text) in [
            (
                offset_of!(CEvent, executable),
                EXECUTABLE_SIZE,
                &self.executable,
            ),
            (offset_of!(CEvent, path), PATH_SIZE, &self.path),
        ] {
            // The end is kept, which tells more, and a NUL after it.
            let text = text.as_bytes();
            put(&mut bytes, at, &text[text.len().saturating_sub(size - 1)..]);
        }
        bytes
    }

    /// Reads one event of the ring; `None` when it cannot be one.
    ///
    /// # Panics
    /// With fewer than [`EVENT_SIZE`] bytes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Event> {
        let call = get_u32(bytes, offset_of!(CEvent, call)) as usize;
        let answer = get_u32(bytes, offset_of!(CEvent, answer)) as usize;
        let result = get_u32(bytes, offset_of!(CEvent, result)).to_ne_bytes();
        Some(Event {
            turn: get_u64(bytes, offset_of!(CEvent, turn)),
            at_ns: get_u64(bytes, offset_of!(CEvent, at_ns)),
            took_ns: get_u64(bytes, offset_of!(CEvent, took_ns)),
            pid: get_u32(bytes, offset_of!(CEvent, pid)),
            call: CALLS.get(call)?,
            answer: ANSWERS.get(answer)?,
            result: Some(i32::from_ne_bytes(result)).filter(|result| *result != UNSEEN),
            executable: get_text(bytes, offset_of!(CEvent, executable), EXECUTABLE_SIZE),
            path: get_text(bytes, offset_of!(CEvent, path), PATH_SIZE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let event = Event {
            turn: 0,
            at_ns: 5,
            took_ns: 6,
            pid: 7,
            call: CALLS[2],
            answer: ANSWERS[1],
            result: None,
            executable: "x".to_owned(),
            path: format!("/{}", "y".repeat(300)),
        };
        let read = Event::parse(&event.to_bytes()).unwrap();
        assert_eq!(read.path, "y".repeat(175));
        let expected = Event {
            path: read.path.clone(),
            ..event
        };
        assert_eq!(read, expected);
    }
}
