//! What is to be compared, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use refit_knobs::{Settings, Variant};
use refit_run::seccomp::Reach;
use refit_stats::DEFAULT_DELTA;

use crate::experiment::UnavailableRecord;
use crate::gate::Gate;
use crate::replicas::Replicas;
use refit_recipe::{DEFAULT_BASE, Recipe};

/// A comparison as requested.
#[derive(Clone, Debug)]
pub struct Request {
    /// What every variant runs; empty with a recipe.
    pub command: Vec<OsString>,
    /// The service and the load that every variant runs in place of a command.
    pub recipe: Option<Recipe>,
    /// Replicas of a service elsewhere, in place of a command or a recipe.
    pub replicas: Option<Arc<dyn Replicas>>,
    /// Variants of the recipe that cannot be tried here.
    pub unavailable: Vec<UnavailableRecord>,
    /// Where the instances of a recipe lie.
    pub dir: PathBuf,
    /// What is to be compared with the baseline.
    pub candidates: Vec<Variant>,
    /// Settings under the baseline and every candidate.
    pub with: Settings,
    /// Whether to add a variant without refit.
    pub bare: bool,
    /// Whether the processes of a command count what malloc gives out.
    pub heap: bool,
    /// Whether each variant of a recipe's service gets one more run that tells why its memory is what it is.
    pub explain_memory: bool,
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
    /// What each run reads as standard input; otherwise /dev/null.
    pub input: Option<PathBuf>,
    /// A run that takes longer is killed, and its variant is disqualified.
    pub timeout: Option<Duration>,
    /// Shell command after each run; the variant is disqualified when it fails.
    pub check: Option<String>,
    /// Whether stdout of a run has to equal that of the baseline.
    pub same_output: bool,
    /// Whether the winner runs against the baseline once more.
    pub confirm: bool,
    /// Limits for the candidates.
    pub gates: Vec<Gate>,
    /// Where allocators are searched for first.
    pub allocator_dir: Option<PathBuf>,
    /// How the calls of the programs are intercepted.
    pub reach: Reach,
    /// Name of this machine in the result; otherwise its host name.
    pub machine: Option<String>,
    /// What was typed besides that has a place of its own in the result, as it would be typed again.
    pub options: Option<Vec<String>>,
}

impl Default for Request {
    /// Nothing to compare yet; three minutes, ±1 %.
    fn default() -> Request {
        Request {
            command: Vec::new(),
            recipe: None,
            replicas: None,
            unavailable: Vec::new(),
            dir: DEFAULT_BASE.into(),
            candidates: Vec::new(),
            with: Settings::default(),
            bare: false,
            heap: false,
            explain_memory: false,
            budget: Duration::from_secs(180),
            rounds: None,
            precision: None,
            seed: 0,
            delta: DEFAULT_DELTA,
            prepare: None,
            conclude: None,
            fresh_copy: None,
            input: None,
            timeout: None,
            check: None,
            same_output: false,
            confirm: false,
            gates: Vec::new(),
            allocator_dir: None,
            reach: Reach::default(),
            machine: None,
            options: None,
        }
    }
}
