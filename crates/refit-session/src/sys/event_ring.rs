//! The ring: a SysV segment that every process of the tree writes.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::event::{EVENT_SIZE, Event, RING_ENTRIES, RING_SIZE, RING_WRITTEN};
use crate::page::EVENTS;

/// The ring of one run. The kernel removes it with the last process that has
/// it attached, whatever ended that (shmctl(2), IPC_RMID).
#[derive(Debug)]
pub struct EventRing {
    id: i32,
    at: *mut libc::c_void,
}

impl EventRing {
    /// Makes and attaches an empty one, which only this user's processes can
    /// attach.
    ///
    /// # Errors
    /// The kernel's, ENOSPC where there are too many segments.
    pub fn create() -> io::Result<EventRing> {
        // SAFETY: plain integers.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, RING_SIZE, libc::IPC_CREAT | 0o600) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a segment of our own, at an address that the kernel chooses.
        let at = unsafe { libc::shmat(id, ptr::null(), 0) };
        let attached = at.addr() != usize::MAX;
        let error = io::Error::last_os_error();
        // On Linux it can be attached by its number until nobody has it any
        // more (shmat(2), NOTES).
        // SAFETY: IPC_RMID takes no buffer.
        unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
        if attached {
            Ok(EventRing { id, at })
        } else {
            Err(error)
        }
    }

    /// Its number, for the policy.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.id
    }

    /// How many calls were traced so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.word(RING_WRITTEN).load(Ordering::Acquire)
    }

    /// Traced call number `number`, counted from 0; `None` when its place holds
    /// another by now, or not yet this one.
    #[must_use]
    pub fn event(&self, number: u64) -> Option<Event> {
        let offset = RING_ENTRIES + usize::try_from(number % EVENTS as u64).ok()? * EVENT_SIZE;
        let turn = self.word(offset);
        if turn.load(Ordering::Acquire) != number + 1 {
            return None;
        }
        let mut bytes = [0; EVENT_SIZE];
        for (at, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: offset + at lies in the segment, which stays attached as
            // long as self; others may write it, so it is read as volatile.
            *byte = unsafe { self.at.cast::<u8>().add(offset + at).read_volatile() };
        }
        fence(Ordering::Acquire);
        (turn.load(Ordering::Relaxed) == number + 1)
            .then(|| Event::parse(&bytes))
            .flatten()
    }

    /// Adds a traced call, as `sync/call_record.c` does.
    pub fn trace(&self, event: &Event) {
        let number = self.word(RING_WRITTEN).fetch_add(1, Ordering::Relaxed);
        let place = (number % EVENTS as u64) as usize;
        let offset = RING_ENTRIES + place * EVENT_SIZE;
        let turn = self.word(offset);
        turn.store(0, Ordering::Release);
        let bytes = event.to_bytes();
        for (at, byte) in bytes.iter().enumerate().skip(size_of::<u64>()) {
            // SAFETY: offset + at lies in the segment, which stays attached as
            // long as self; others may write it, so it is written as volatile.
            unsafe { self.at.cast::<u8>().add(offset + at).write_volatile(*byte) };
        }
        turn.store(number + 1, Ordering::Release);
    }

    /// Where it begins: with what the emulated disk remembers.
    #[must_use]
    pub fn start(&self) -> *mut libc::c_void {
        self.at
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= RING_SIZE && offset.is_multiple_of(8));
        // SAFETY: in the segment, aligned (which is page-aligned), and only
        // ever accessed atomically on both sides.
        unsafe { AtomicU64::from_ptr(self.at.cast::<u8>().add(offset).cast()) }
    }
}

impl Drop for EventRing {
    fn drop(&mut self) {
        // SAFETY: attached in create, and nothing borrowed from it is left.
        unsafe { libc::shmdt(self.at) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_attached_by_its_number_until_it_is_dropped() {
        let ring = EventRing::create().unwrap();
        // SAFETY: as in create.
        let again = unsafe { libc::shmat(ring.id(), ptr::null(), libc::SHM_RDONLY) };
        assert_ne!(again.addr(), usize::MAX);
        // SAFETY: just attached.
        unsafe { libc::shmdt(again) };
        let id = ring.id();
        drop(ring);
        // SAFETY: as in create.
        let gone = unsafe { libc::shmat(id, ptr::null(), libc::SHM_RDONLY) };
        assert_eq!(gone.addr(), usize::MAX);
    }

    #[test]
    fn a_ring_of_random_words_is_read_and_ends() {
        let ring = EventRing::create().unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for at in (0..RING_SIZE).step_by(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // SAFETY: in the segment, which nobody else has.
            unsafe { ring.at.cast::<u64>().add(at / 8).write_volatile(state) };
        }
        for number in [0, u64::MAX, 5] {
            ring.word(RING_WRITTEN).store(number, Ordering::Relaxed);
            let mut trace = crate::Trace::new(&ring);
            let read = trace.drain().len() as u64;
            let (rest, lost) = trace.finish();
            assert_eq!(read + rest.len() as u64 + lost, number);
        }
        // One that looks right in all but what it says.
        let words = ring.at.cast::<u64>();
        // SAFETY: as above.
        unsafe { words.add(RING_ENTRIES / 8).write_volatile(1) };
        if let Some(event) = ring.event(0) {
            assert!(!event.path.chars().any(char::is_control));
        }
    }

    #[test]
    fn what_was_traced_is_there_in_its_turn() {
        let ring = EventRing::create().unwrap();
        for pid in [7, 8] {
            ring.trace(&fsync_of(pid));
        }
        assert_eq!(ring.events(), 2);
        let second = ring.event(1).unwrap();
        assert_eq!((second.turn, second.pid, second.result), (2, 8, Some(-5)));
    }

    #[test]
    fn a_slow_writer_s_call_is_not_lost_when_others_overtake_it() {
        let ring = EventRing::create().unwrap();
        let mut trace = crate::Trace::new(&ring);
        // One process has its place and has not written yet.
        ring.word(RING_WRITTEN).store(1, Ordering::Relaxed);
        let end = ring.events();
        ring.trace(&fsync_of(7));
        assert_eq!(trace.take_until(end, false), []);
        ring.word(RING_WRITTEN).store(0, Ordering::Relaxed);
        ring.trace(&fsync_of(8));
        ring.word(RING_WRITTEN).store(2, Ordering::Relaxed);
        let (events, lost) = trace.finish();
        let pids: Vec<u32> = events.iter().map(|event| event.pid).collect();
        assert_eq!((pids, lost), (vec![8, 7], 0));
    }

    fn fsync_of(pid: u32) -> Event {
        Event {
            turn: 0,
            at_ns: 1,
            took_ns: 2,
            pid,
            call: "fsync",
            answer: "real",
            result: Some(-5),
            executable: "x".to_owned(),
            path: String::new(),
        }
    }

    #[test]
    fn an_empty_ring_has_no_events() {
        let ring = EventRing::create().unwrap();
        assert_eq!(ring.events(), 0);
        assert_eq!(ring.event(0), None);
    }
}
