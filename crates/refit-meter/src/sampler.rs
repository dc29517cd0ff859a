//! Memory over time, read so rarely that the measured program is not slowed.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::memory::{MemorySample, memory_sample};

/// The shortest time between two samples.
const PAUSE: Duration = Duration::from_millis(50);
/// A sample that took t is followed by a pause of this many t: at most 1 % of
/// one core.
const SHARE: u32 = 100;
/// More samples than this are thinned out.
const MOST: usize = 2000;

/// Takes samples of a tree's memory. A slow reading, which is one that may stop
/// the program itself, is followed by a long pause.
#[derive(Clone, Debug)]
pub struct MemorySampler {
    window: Instant,
    /// The end of the last reading, and the pause after it.
    last: Option<(Instant, Duration)>,
    /// Times the usual pause: doubled whenever the samples are thinned out.
    spacing: u32,
    /// In order of time.
    pub samples: Vec<MemorySample>,
}

impl MemorySampler {
    /// For a window that begins at `window`.
    #[must_use]
    pub fn new(window: Instant) -> MemorySampler {
        MemorySampler {
            window,
            last: None,
            spacing: 1,
            samples: Vec::new(),
        }
    }

    /// Whether the next sample may be taken.
    #[must_use]
    pub fn due(&self, now: Instant) -> bool {
        self.last
            .is_none_or(|(end, pause)| now.saturating_duration_since(end) >= pause)
    }

    /// Takes one, see [`memory_sample`]. `began` is before `pids` were looked
    /// for: that is a part of the cost. Where no process is left, there is
    /// nothing to keep.
    pub fn sample(&mut self, began: Instant, proc: &Path, pids: &[u32], parent: u32) {
        let at = Instant::now().saturating_duration_since(self.window);
        let mut sample = memory_sample(proc, pids, parent);
        sample.at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        if sample.processes > 0 || sample.unreadable > 0 {
            self.keep(sample);
        }
        let end = Instant::now();
        self.last = Some((end, self.pause(end.saturating_duration_since(began))));
    }

    fn pause(&self, cost: Duration) -> Duration {
        PAUSE
            .max(cost.saturating_mul(SHARE))
            .saturating_mul(self.spacing)
    }

    fn keep(&mut self, sample: MemorySample) {
        self.samples.push(sample);
        if self.samples.len() <= MOST {
            return;
        }
        // The peak has to stay.
        let all = std::mem::take(&mut self.samples);
        let peak = (0..all.len()).max_by_key(|index| all[*index].pss_bytes());
        let kept = all.into_iter().enumerate();
        let kept = kept.filter(|(index, _)| index % 2 == 0 || Some(*index) == peak);
        self.samples = kept.map(|(_, sample)| sample).collect();
        self.spacing = self.spacing.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler() -> MemorySampler {
        MemorySampler::new(Instant::now())
    }

    fn sample(at_ms: u64, pss: u64) -> MemorySample {
        MemorySample {
            at_ms,
            processes: 1,
            parent_pss_bytes: pss,
            ..MemorySample::default()
        }
    }

    #[test]
    fn the_pause_is_a_hundred_times_the_cost_and_never_short() {
        let ms = Duration::from_millis;
        let mut sampler = sampler();
        for (cost, pause) in [(0, 50), (100, 50), (500, 50), (600, 60), (80_000, 8000)] {
            assert_eq!(sampler.pause(Duration::from_micros(cost)), ms(pause));
        }
        sampler.spacing = 4;
        assert_eq!(sampler.pause(ms(0)), ms(200));
        assert_eq!(sampler.pause(ms(2)), ms(800));
        sampler.spacing = u32::MAX;
        assert!(sampler.pause(Duration::MAX) > ms(u64::MAX / 2));
    }

    #[test]
    fn the_next_sample_is_due_after_the_pause_which_counts_the_search_as_well() {
        let mut sampler = sampler();
        let now = Instant::now();
        assert!(sampler.due(now));
        // Ten seconds ago the caller began to look for processes.
        let Some(began) = now.checked_sub(Duration::from_secs(10)) else {
            return;
        };
        let me = std::process::id();
        sampler.sample(began, Path::new("/proc"), &[me], me);
        assert_eq!(sampler.samples.len(), 1);
        let after = Instant::now();
        assert!(!sampler.due(after) && !sampler.due(now));
        assert!(!sampler.due(now + Duration::from_secs(1000)));
        assert!(sampler.due(after + Duration::from_secs(1200)));
        let (_, pause) = sampler.last.unwrap();
        assert!(pause >= Duration::from_secs(1000));
    }

    #[test]
    fn of_a_tree_that_is_gone_there_is_no_sample() {
        let mut sampler = sampler();
        sampler.sample(Instant::now(), Path::new("/nowhere"), &[1, 2], 1);
        assert!(sampler.samples.is_empty());
        assert!(!sampler.due(Instant::now()), "but looking had its price");
    }

    #[test]
    fn many_samples_are_thinned_out_evenly_and_keep_their_peak() {
        let mut sampler = sampler();
        for at in 0..=MOST as u64 {
            // The peak is at an odd place, which thinning out removes.
            sampler.keep(sample(at, if at == 777 { 9 } else { at % 7 }));
        }
        assert_eq!(sampler.spacing, 2);
        assert_eq!(sampler.samples.len(), MOST / 2 + 2);
        let times = sampler.samples.iter().map(|sample| sample.at_ms);
        let expected = (0..=MOST as u64).filter(|at| at % 2 == 0 || *at == 777);
        assert!(times.eq(expected));
        let before = sampler.samples.len();
        // Of equal samples one is the peak.
        for at in 0..=MOST as u64 {
            sampler.keep(sample(at, 9));
        }
        assert!(before < MOST && sampler.samples.len() < MOST);
        assert_eq!(sampler.spacing, 8);
        assert_eq!(
            sampler.samples.iter().map(MemorySample::pss_bytes).max(),
            Some(9)
        );
    }
}
