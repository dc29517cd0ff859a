//! How long a run is recorded.

use std::time::{Duration, Instant};

use crate::request::Request;

/// How long the first acknowledgement is waited for at least, however short the run is to be:
/// programs begin late on a busy machine.
const FIRST: Duration = Duration::from_secs(20);

/// The time of a run. Where its length ends it, it begins with the first
/// acknowledgement; else with the program.
pub struct Clock {
    started: Instant,
    counts_from: Option<Instant>,
    length: Duration,
}

impl Clock {
    /// Starts it.
    pub fn start(request: &Request) -> Clock {
        let started = Instant::now();
        Clock {
            started,
            counts_from: (!request.is_open_ended()).then_some(started),
            length: request.length,
        }
    }

    /// Call it often. `is_acknowledged`: something has been acknowledged by now.
    pub fn tick(&mut self, is_acknowledged: bool) {
        if is_acknowledged && self.counts_from.is_none() {
            self.counts_from = Some(Instant::now());
        }
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.counts_from.map_or_else(
            || self.started.elapsed() >= self.length.max(FIRST),
            |from| from.elapsed() >= self.length,
        )
    }
}
