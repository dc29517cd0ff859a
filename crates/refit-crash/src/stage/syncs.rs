//! The program's sync calls as acknowledgements.

use refit_session::{EventRing, Trace};

use crate::clock::now;
use crate::promise::Promise;

/// Sync calls as acknowledgements.
pub struct Syncs<'a> {
    trace: Trace<'a>,
    count: u64,
}

impl<'a> Syncs<'a> {
    pub fn new(board: &'a EventRing) -> Syncs<'a> {
        Syncs {
            trace: Trace::new(board),
            count: 0,
        }
    }

    pub fn drain(&mut self, promises: &mut Vec<Promise>) {
        let events = self.trace.drain();
        let at = now();
        for event in events {
            if event.result.is_none_or(|result| result == 0) {
                self.count += 1;
                let id = self.count.to_string();
                promises.push(Promise { id, at });
            }
        }
    }
}
