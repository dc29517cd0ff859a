//! The program's sync calls as acknowledgements.

use refit_run::{EventRing, Trace};

use crate::acknowledgement::Acknowledgement;
use crate::record::now;

/// Sync calls as acknowledgements.
pub struct SyncCalls<'a> {
    trace: Trace<'a>,
    count: u64,
}

impl<'a> SyncCalls<'a> {
    pub fn new(event_ring: &'a EventRing) -> SyncCalls<'a> {
        SyncCalls {
            trace: Trace::new(event_ring),
            count: 0,
        }
    }

    pub fn drain(&mut self, acknowledgements: &mut Vec<Acknowledgement>) {
        self.take(false, acknowledgements);
    }

    /// The rest, when the program has ended.
    pub fn finish(&mut self, acknowledgements: &mut Vec<Acknowledgement>) {
        self.take(true, acknowledgements);
    }

    fn take(&mut self, is_last: bool, acknowledgements: &mut Vec<Acknowledgement>) {
        let events = if is_last {
            self.trace.finish().0
        } else {
            self.trace.drain()
        };
        let at = now();
        for event in events {
            if event.result.is_none_or(|result| result == 0) {
                self.count += 1;
                let id = self.count.to_string();
                acknowledgements.push(Acknowledgement { id, at });
            }
        }
    }
}
