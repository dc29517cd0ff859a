//! What is to be compared, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use refit_knobs::{Settings, Variant};

use crate::gate::Gate;

/// A comparison as it was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// What every variant runs.
    pub command: Vec<OsString>,
    /// What is to be compared with the baseline.
    pub candidates: Vec<Variant>,
    /// Settings under the baseline and every candidate.
    pub with: Settings,
    /// Adds a variant without refit.
    pub bare: bool,
    /// How long it may take.
    pub budget: Duration,
    /// At most this many rounds, the warm-up not counted.
    pub rounds: Option<usize>,
    /// Ends as soon as every interval is this narrow, as a relative half-width.
    pub precision: Option<f64>,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Within ± this relative change two variants are the same.
    pub delta: f64,
    /// Shell command before each run, not timed.
    pub prepare: Option<String>,
    /// Shell command after each run, not timed.
    pub conclude: Option<String>,
    /// Each run starts in a fresh copy of this directory.
    pub fresh_copy: Option<PathBuf>,
    /// A run that takes longer is killed, and its variant disqualified.
    pub timeout: Option<Duration>,
    /// Shell command after each run; the variant is disqualified when it fails.
    pub check: Option<String>,
    /// What a run prints to stdout has to equal what the baseline prints.
    pub same_output: bool,
    /// The winner runs against the baseline once more.
    pub confirm: bool,
    /// What the candidates have to keep.
    pub gates: Vec<Gate>,
    /// Looked at first for allocators.
    pub allocator_dir: Option<PathBuf>,
}
