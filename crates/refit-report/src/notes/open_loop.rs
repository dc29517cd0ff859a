//! How requests at their times were sent.

use refit_lab::experiment::{Experiment, LatencyRecord};

use super::note::{Note, note};
use crate::format;
use crate::paint::Tone;

/// From when latencies count, and what refit itself was late by. Only of an open loop.
pub fn open_loop(experiment: &Experiment) -> Option<Note> {
    let all: Vec<&LatencyRecord> = experiment
        .runs
        .iter()
        .filter(|run| !run.warmup && run.failure.is_none())
        .filter_map(|run| run.load.as_ref()?.latencies.as_ref())
        .collect();
    let late = all.iter().map(|one| one.late_p99_ns).max()?;
    let mut text = format!(
        "each request has its time, whatever the service does, and latencies count from then; refit sent 99 % of them within {} \
         of it, in the worst of the runs",
        format::duration(late as f64)
    );
    let held = all.iter().map(|one| one.held).max().unwrap_or(0);
    if let (1.., Some(first)) = (held, all.first()) {
        text.push_str(&format!(
            "; up to {} of a run waited for one of the {} connections",
            format::count(held as f64),
            first.connections
        ));
    }
    if all.iter().any(|one| !one.ran_first) {
        text.push_str("; refit ran as other programs do (without the right to SCHED_FIFO)");
    }
    Some(note("open loop:", Tone::Plain, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_worst_run_is_told() {
        let mut comparison = sample::service();
        assert!(open_loop(&comparison.experiment).is_none());
        let runs = comparison.experiment.runs.as_mut_slice();
        for (at, run) in runs.iter_mut().enumerate() {
            let Some(load) = &mut run.load else {
                continue;
            };
            load.latencies = Some(LatencyRecord {
                counts: vec![[1_000_000, 10]],
                late_p99_ns: if run.warmup {
                    9_000_000
                } else {
                    50_000 + at as u64
                },
                late_max_ns: 70_000,
                held: 3,
                connections: 100,
                schedule_seed: 1,
                ran_first: true,
            });
        }
        let note = open_loop(&comparison.experiment).unwrap();
        assert!(
            note.text.contains("within 50.1 µs") || note.text.contains("within 50 µs"),
            "{}",
            note.text
        );
        assert!(
            note.text
                .contains("up to 3 of a run waited for one of the 100 connections"),
            "{}",
            note.text
        );
        assert!(!note.text.contains("SCHED_FIFO"), "{}", note.text);
    }
}
