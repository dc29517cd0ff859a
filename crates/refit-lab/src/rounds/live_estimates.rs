//! What the runs show so far, for who watches and for the end.

use std::time::{Duration, Instant};

use crate::comparison::Comparison;
use crate::effects::Effects;
use crate::experiment::Experiment;
use crate::length::Length;
use crate::request::Request;

/// Live estimates are made at most this often: they cost time between runs.
const ESTIMATES_EVERY: Duration = Duration::from_millis(300);
/// … and the time between two of them is at least this many times what one takes.
const ESTIMATES_SHARE: u32 = 20;

/// Live estimates, made no more often than they may cost.
pub(super) struct LiveEstimates {
    /// The last ones.
    pub(super) effects: Effects,
    made: Instant,
    pause: Duration,
    least: Duration,
}

impl LiveEstimates {
    pub(super) fn new(request: &Request) -> LiveEstimates {
        // A wanted precision is checked as often as it may cost.
        let least = match request.precision {
            Some(_) => Duration::ZERO,
            None => ESTIMATES_EVERY,
        };
        LiveEstimates {
            effects: Effects::default(),
            made: Instant::now(),
            pause: least,
            least,
        }
    }

    pub(super) fn are_due(&self) -> bool {
        self.made.elapsed() > self.pause
    }

    /// Of the metrics on which the end depends. What `show` takes counts as their cost.
    pub(super) fn make(
        &mut self,
        experiment: &Experiment,
        length: &Length,
        show: impl FnOnce(&Comparison),
    ) {
        let began = Instant::now();
        self.effects = Effects::of_metrics(experiment, |name| length.depends_on(experiment, name));
        let comparison = Comparison::unfinished(experiment.clone(), self.effects.clone());
        show(&comparison);
        self.made = Instant::now();
        self.pause = self.least.max(began.elapsed() * ESTIMATES_SHARE);
    }
}
