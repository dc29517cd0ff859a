//! Makes one run of one variant on another machine: a fresh replica of a service that runs there, and the load on it.
//! What starts, loads and removes replicas is the caller's (`Replicas`); nothing of this machine is measured.

use std::io;

use refit_knobs::Settings;
use refit_run::{Outcome, interruptions};

use super::runner::{Blame, Made, Runs};
use crate::error::LabError;
use crate::experiment::LoadRecord;
use crate::replicas::{LOAD, Loaded, PSS, ReplicaError, Replicas};

/// Runs variants on replicas.
pub struct ReplicaRunner<'a> {
    replicas: &'a dyn Replicas,
    settings: Vec<Settings>,
}

impl<'a> ReplicaRunner<'a> {
    /// `settings` of each variant.
    pub fn new(replicas: &'a dyn Replicas, settings: Vec<Settings>) -> Self {
        ReplicaRunner { replicas, settings }
    }
}

impl Runs for ReplicaRunner<'_> {
    fn next_pair(&mut self) {
        self.replicas.next_pair();
    }

    fn check_room(&self, _runs: usize) -> Result<(), LabError> {
        Ok(())
    }

    fn call_witness(&mut self) {}

    fn run(&mut self, variant: usize) -> Result<Made, LabError> {
        let mut made = Made::nothing();
        match self.replicas.run(&self.settings[variant]) {
            Ok(loaded) => {
                made.run.exit = Outcome::Code(0);
                made.run.metrics.wall_ns = loaded.load_ns;
                made.load = Some(record(loaded));
            }
            // The variant did not fail where the user's signal ended it.
            Err(_) if interruptions() > 0 => {
                return Err(LabError::Io {
                    action: "interrupted".to_owned(),
                    cause: io::ErrorKind::Interrupted.into(),
                });
            }
            Err(ReplicaError::Failed(reason)) => made.set_failure(reason, Blame::Variant),
            Err(ReplicaError::Never(reason)) => made.set_failure(reason, Blame::VariantAtOnce),
            Err(ReplicaError::Ended(reason)) => return Err(LabError::Ended(reason)),
        }
        Ok(made)
    }
}

fn record(loaded: Loaded) -> LoadRecord {
    let pss = loaded.pss_bytes.map(|bytes| (PSS, bytes));
    let values = [(LOAD, loaded.load_ns)].into_iter().chain(pss);
    LoadRecord {
        operations: 1,
        window_ns: loaded.load_ns,
        values: values
            .map(|(name, value)| (name.to_owned(), value as f64))
            .collect(),
        outcome: String::new(),
        answers: Vec::new(),
        latencies: None,
        service: None,
    }
}
