//! What is to be compared, and how.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use refit_knobs::{Settings, Variant};
use refit_recipe::Recipe;
use refit_run::seccomp::Reach;
use refit_stats::DEFAULT_DELTA;

use crate::experiment::UnavailableRecord;
use crate::gate::Gate;
use crate::replicas::Replicas;

/// How long a comparison may take where nothing says otherwise.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(180);

/// A comparison as requested.
#[derive(Clone, Debug)]
pub struct Request {
    /// What every variant runs.
    pub subject: Subject,
    /// Variants of the subject that cannot be tried here.
    pub unavailable: Vec<UnavailableRecord>,
    /// What is to be compared with the baseline.
    pub candidates: Vec<Variant>,
    /// Settings under the baseline and every candidate.
    pub with: Settings,
    /// Whether to add a variant without refit.
    pub bare: bool,
    /// Whether the processes of each run count what malloc gives out.
    pub heap: bool,
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
    /// How many comparisons are answered together, this one among them.
    pub together: usize,
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
    /// What was typed that has no place of its own in the result.
    pub options: Option<Vec<String>>,
}

/// What every variant runs, with what belongs to a subject of its kind alone.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A command of this machine.
    Command(CommandSubject),
    /// A service of this machine, in private instances, and the load on it.
    Recipe(Box<RecipeSubject>),
    /// Replicas of a service on other machines, and the load on them.
    Replicas(Arc<dyn Replicas>),
}

/// A command, and what is done around each of its runs.
#[derive(Clone, Debug, Default)]
pub struct CommandSubject {
    /// Its words.
    pub words: Vec<OsString>,
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
}

/// A recipe, and where its instances are.
#[derive(Clone, Debug)]
pub struct RecipeSubject {
    /// The service and the load.
    pub recipe: Recipe,
    /// Directory below which the instances lie.
    pub dir: PathBuf,
    /// Whether each variant of the service gets one more run that tells why its memory is what it is.
    pub explain_memory: bool,
}

impl Subject {
    /// The recipe, which declares the classes of settings; commands and replicas have none.
    #[must_use]
    pub fn recipe(&self) -> Option<&Recipe> {
        match self {
            Subject::Recipe(subject) => Some(&subject.recipe),
            Subject::Command(_) | Subject::Replicas(_) => None,
        }
    }
}

impl Request {
    /// A comparison of this subject with nothing yet; three minutes, ±1 %.
    #[must_use]
    pub fn of(subject: Subject) -> Request {
        Request {
            subject,
            unavailable: Vec::new(),
            candidates: Vec::new(),
            with: Settings::default(),
            bare: false,
            heap: false,
            budget: DEFAULT_BUDGET,
            rounds: None,
            precision: None,
            seed: 0,
            delta: DEFAULT_DELTA,
            together: 1,
            confirm: false,
            gates: Vec::new(),
            allocator_dir: None,
            reach: Reach::default(),
            machine: None,
            options: None,
        }
    }
}
