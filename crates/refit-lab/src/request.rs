//! What is to be compared, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use refit_knobs::{Settings, Variant};
use refit_run::seccomp::Reach;
use refit_stats::DEFAULT_DELTA;

use crate::experiment::UnavailableRecord;
use crate::gate::Gate;
use refit_recipe::{DEFAULT_BASE, Recipe};

/// A comparison as it was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// What every variant runs; with a recipe nothing.
    pub command: Vec<OsString>,
    /// The service and the load that every variant runs in place of a command.
    pub recipe: Option<Recipe>,
    /// Variants of the recipe that cannot be tried here.
    pub unavailable: Vec<UnavailableRecord>,
    /// Where the instances of a recipe lie.
    pub dir: PathBuf,
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
    /// By what the programs' calls are reached.
    pub reach: Reach,
}

impl Default for Request {
    /// Nothing to compare yet; three minutes, ± 1 %.
    fn default() -> Request {
        Request {
            command: Vec::new(),
            recipe: None,
            unavailable: Vec::new(),
            dir: DEFAULT_BASE.into(),
            candidates: Vec::new(),
            with: Settings::default(),
            bare: false,
            budget: Duration::from_secs(180),
            rounds: None,
            precision: None,
            seed: 0,
            delta: DEFAULT_DELTA,
            prepare: None,
            conclude: None,
            fresh_copy: None,
            timeout: None,
            check: None,
            same_output: false,
            confirm: false,
            gates: Vec::new(),
            allocator_dir: None,
            reach: Reach::default(),
        }
    }
}
