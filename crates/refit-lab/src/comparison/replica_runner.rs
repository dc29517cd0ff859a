//! Makes one run of one variant on another machine: a fresh replica of a service that runs there, and the load on it.
//! What starts, loads and removes replicas is the caller's ([`Replicas`]); nothing of this machine is measured.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

use refit_knobs::Settings;
use refit_recipe::RecipeRecord;
use refit_run::{Outcome, interruptions};

use super::runner::{Made, Runs};
use crate::error::LabError;
use crate::experiment::LoadRecord;
use crate::request::Request;
use crate::warnings::Warning;

/// The metric of a comparison of replicas: from the load's start to its end.
pub const LOAD: &str = "load";
/// Proportional memory of the replica's processes after the load.
pub const PSS: &str = "pss";

/// Replicas of a service elsewhere.
pub trait Replicas: Debug + Send + Sync {
    /// What they are replicas of.
    fn record(&self) -> RecipeRecord;

    /// The machines that they run on.
    fn fixed(&self) -> BTreeMap<String, String>;

    /// A new round pair: all its replicas run on one machine.
    fn next_pair(&self);

    /// Starts a replica with these settings, loads it, removes it.
    ///
    /// # Errors
    /// Why the run does not count.
    fn run(&self, settings: &Settings) -> Result<Loaded, ReplicaError>;
}

/// What a load on a replica showed.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// From its start to its end.
    pub load_ns: u64,
    /// Memory of the replica's processes afterwards; `None` where it could not be read.
    pub pss_bytes: Option<u64>,
}

/// Why there is no run.
#[derive(Debug)]
pub enum ReplicaError {
    /// Of this variant; another run may succeed.
    Failed(String),
    /// Of this variant, and of any other run of it.
    Never(String),
    /// Nothing can be run any more.
    Ended(String),
}

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
            // What the user's signal ended is no failure of the variant.
            Err(_) if interruptions() > 0 => {
                return Err(LabError::Io {
                    action: "interrupted".to_owned(),
                    cause: io::ErrorKind::Interrupted.into(),
                });
            }
            Err(ReplicaError::Failed(reason)) => made.set_failure(reason, false),
            Err(ReplicaError::Never(reason)) => made.set_failure(reason, true),
            Err(ReplicaError::Ended(reason)) => return Err(LabError::Ended(reason)),
        }
        Ok(made)
    }

    fn warnings(&self) -> Option<Warning> {
        None
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
        service: None,
    }
}

/// Of a request for replicas.
pub fn runner<'a>(request: &'a Request, settings: Vec<Settings>) -> Option<Box<dyn Runs + 'a>> {
    let replicas = request.replicas.as_deref()?;
    Some(Box::new(ReplicaRunner::new(replicas, settings)))
}
