//! What a tuning tells while it runs, and what it stores after each round pair and step.

use std::time::Duration;

use anyhow::Result;
use refit_lab::experiment::Experiment;
use refit_lab::{Comparison, Journal, Progress, StepKind, Tuning};
use refit_report::{proposed, step_ended};
use refit_run::interrupt;

use super::log::Log;
use crate::cmd::progress::Bar;

/// Writes into a log. Where that cannot be written, the tuning ends as by an interruption: what is not recorded could not
/// be gone on from, nor planned.
pub struct FileJournal<'a> {
    log: &'a Log,
    bar: Bar<'a>,
    /// Of the step that runs.
    file: String,
    stored: Result<()>,
}

impl<'a> FileJournal<'a> {
    pub fn new(log: &'a Log, bar: Bar<'a>) -> FileJournal<'a> {
        FileJournal {
            log,
            bar,
            file: String::new(),
            stored: Ok(()),
        }
    }

    /// Takes the bar off the screen, and stores the record.
    pub fn finish(self, tuning: &Tuning) -> Result<()> {
        self.bar.finish();
        self.stored.and(self.log.write_record(tuning))
    }

    /// From here on an interruption ends power cuts, not rounds.
    pub fn power_cuts_begin(&self) {
        self.bar.power_cuts_begin();
    }

    fn store(&mut self, written: Result<()>) {
        if self.stored.is_ok() && written.is_err() {
            self.stored = written;
            self.bar
                .say("the log cannot be written: the run under way is the last one");
            interrupt();
        }
    }
}

impl Progress for FileJournal<'_> {
    fn begins(&mut self, experiment: &Experiment) {
        self.bar.begins(experiment);
    }

    fn planned(&mut self, experiment: &Experiment, longest: Duration) {
        self.bar.planned(experiment, longest);
    }

    fn runs(&mut self, experiment: &Experiment, variant: usize) {
        self.bar.runs(experiment, variant);
    }

    fn pair_done(&mut self, comparison: &Comparison) {
        let written = self.log.write(&self.file, comparison);
        self.store(written);
        self.bar.pair_done(comparison);
    }
}

impl Journal for FileJournal<'_> {
    fn observes(&mut self) {
        self.bar.say("observing one run of the baseline");
    }

    fn proposed(&mut self, tuning: &Tuning) {
        let written = self.log.write_record(tuning);
        self.store(written);
        self.bar.say(&proposed(tuning));
    }

    fn step_begins(&mut self, kind: StepKind, variants: &[String], file: &str) {
        file.clone_into(&mut self.file);
        self.bar
            .say(&format!("{}: {}", kind.word(), variants.join(", ")));
    }

    fn step_ended(&mut self, tuning: &Tuning, comparison: &Comparison) {
        let written = self.log.write(&self.file, comparison);
        self.store(written);
        let written = self.log.write_record(tuning);
        self.store(written);
        if let Some(step) = tuning.steps.last() {
            self.bar.say(&step_ended(step));
        }
    }
}
