//! The traced sync calls, in order, as the program makes them.

use crate::event::Event;
use crate::page::EVENTS;
use crate::sys::event_ring::EventRing;

/// Reads the ring.
#[derive(Debug)]
pub struct Trace<'a> {
    ring: &'a EventRing,
    next: u64,
    lost: u64,
}

impl<'a> Trace<'a> {
    /// From the first call on.
    #[must_use]
    pub fn new(ring: &'a EventRing) -> Trace<'a> {
        Trace {
            ring,
            next: 0,
            lost: 0,
        }
    }

    /// What was traced since the last time. A call that is just being written
    /// waits for the next time, and so does what came after it.
    pub fn drain(&mut self) -> Vec<Event> {
        self.take_until(self.ring.events(), false)
    }

    /// The rest, when the program has ended: what is still unwritten was given
    /// up by a process that was killed.
    pub fn finish(&mut self) -> (Vec<Event>, u64) {
        let rest = self.take_until(self.ring.events(), true);
        (rest, self.lost)
    }

    pub(crate) fn take_until(&mut self, end: u64, is_last: bool) -> Vec<Event> {
        // A scribbled number must not keep us here.
        let oldest = end.saturating_sub(EVENTS as u64);
        if self.next < oldest {
            self.lost = self.lost.saturating_add(oldest - self.next);
            self.next = oldest;
        }
        let mut events = Vec::new();
        while self.next < end {
            match self.ring.event(self.next) {
                Some(event) => events.push(event),
                // Its writer has not finished, however many others came after
                // it, as long as none of them may have taken its place.
                None if !is_last && self.is_in_the_ring() => break,
                None => self.lost += 1,
            }
            self.next += 1;
        }
        events
    }

    fn is_in_the_ring(&self) -> bool {
        self.ring.events().saturating_sub(self.next) <= EVENTS as u64
    }
}
