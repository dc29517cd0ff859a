//! The memory of one variant's runs, by operations.

use refit_lab::experiment::{Experiment, LoadRecord};
use refit_run::MemorySample;

/// One run: operations, and memory then.
pub type Points<'a> = Vec<(f64, &'a MemorySample)>;

/// All runs of a variant that count.
pub struct Course<'a> {
    /// Index into the experiment's variants.
    pub variant: usize,
    /// By their memory at the end.
    runs: Vec<Points<'a>>,
}

impl<'a> Course<'a> {
    /// `None` without a run whose memory is known at two moments.
    pub fn of(experiment: &'a Experiment, variant: usize) -> Option<Course<'a>> {
        let loads = experiment
            .runs
            .counted(variant)
            .filter_map(|run| run.load.as_ref());
        let mut runs: Vec<Points> = loads.filter_map(points).collect();
        let end = |points: &Points| points.last().map(|(_, sample)| sample.pss_bytes());
        runs.sort_by_key(end);
        (!runs.is_empty()).then_some(Course { variant, runs })
    }

    /// The run whose memory at the end is the middle one.
    pub fn median(&self) -> &Points<'a> {
        &self.runs[(self.runs.len() - 1) / 2]
    }

    /// Everything that was seen.
    pub fn all(&self) -> impl Iterator<Item = &(f64, &'a MemorySample)> {
        self.runs.iter().flatten()
    }
}

/// The samples of the window and the one at its end, which is not of a moment
/// but of the work: it lies where all operations are done.
fn points(load: &LoadRecord) -> Option<Points<'_>> {
    let service = load.service.as_ref()?;
    let operations = load.operations as f64;
    let during = service.memory.iter().map(|sample| {
        let part = sample.at_ms as f64 * 1e6 / load.window_ns.max(1) as f64;
        (part.min(1.0) * operations, sample)
    });
    let end = Some((operations, &service.end)).filter(|(_, end)| end.processes > 0);
    let points: Points = during.chain(end).collect();
    (points.len() > 1).then_some(points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn operations_are_evenly_spread_and_the_end_is_their_end() {
        let mut comparison = sample::service();
        for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
            let load = run.load.as_mut().unwrap();
            (load.operations, load.window_ns) = (1000, 4_000_000_000);
            let service = load.service.as_mut().unwrap();
            service.memory.truncate(3);
            for (sample, at_ms) in service.memory.iter_mut().zip([0, 1000, 9000]) {
                sample.at_ms = at_ms;
            }
        }
        let course = Course::of(&comparison.experiment, 1).unwrap();
        let at: Vec<f64> = course.median().iter().map(|(at, _)| *at).collect();
        assert_eq!(at, [0.0, 250.0, 1000.0, 1000.0]);
        assert_eq!(course.all().count(), 20 * 4);
        // In the sample the later a run the more it has.
        let ends: Vec<u64> = course
            .runs
            .iter()
            .map(|points| points[3].1.pss_bytes())
            .collect();
        assert!(ends.is_sorted() && ends[9] < ends[19]);
    }

    #[test]
    fn without_samples_there_is_no_course() {
        let mut comparison = sample::service();
        for run in comparison.experiment.runs.as_mut_slice().iter_mut() {
            let service = run.load.as_mut().unwrap().service.as_mut().unwrap();
            service.memory.clear();
        }
        assert!(Course::of(&comparison.experiment, 1).is_none());
    }
}
