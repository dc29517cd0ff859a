//! What makes the runs of a comparison: of a command, of a recipe, or of replicas.

use std::cell::Cell;
use std::io;

use refit_knobs::{Launch, Settings};
use refit_run::{Options, Run, seccomp};
use refit_stats::Rng;

use crate::error::LabError;
use crate::experiment::{LoadRecord, Role, VariantRecord};
use crate::memory_reason::MemoryReason;
use crate::request::Request;
use crate::warnings::Warning;

/// The environment varies by at most this many bytes from pair to pair.
const PADDING: u64 = 2048;
/// A run, and why it does not count.
pub struct Made {
    pub run: Run,
    /// What a recipe's load did.
    pub load: Option<LoadRecord>,
    pub failure: Option<String>,
    /// Why its memory is what it is, where that was asked.
    pub memory: Option<MemoryReason>,
    /// What the failure means for the variant.
    pub blame: Blame,
}

/// What a run that does not count means for its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// After some of them it is disqualified.
    Variant,
    /// It is disqualified, however often it ran before.
    VariantAtOnce,
    /// Nothing: refit or the machine fell short.
    Nobody,
}

impl Made {
    /// Nothing has run yet.
    pub fn nothing() -> Made {
        Made {
            run: Run::not_started(),
            load: None,
            failure: None,
            memory: None,
            blame: Blame::Variant,
        }
    }

    pub fn set_failure(&mut self, reason: String, blame: Blame) {
        self.failure = Some(reason);
        self.blame = blame;
    }
}

/// What makes the runs of a comparison.
pub trait Runs {
    /// A new round pair: the same environment size for all its runs.
    fn next_pair(&mut self);

    /// Whether there is room for what this number of runs leaves on the disk.
    ///
    /// # Errors
    /// [`LabError::NoRoom`] and its kin.
    fn check_room(&self, runs: usize) -> Result<(), LabError>;

    /// From now on the kernel's tracepoints count the durable calls of each run,
    /// and the runs are not measured any more.
    fn call_witness(&mut self);

    /// From now on the heap of a service is counted, and the runs are not measured any more but tell why its memory is
    /// what it is.
    fn explain_memory(&mut self) {}

    /// Prepares, waits for writeback, runs, checks.
    ///
    /// # Errors
    /// What ends the whole comparison. A run that fails is not an error.
    fn run(&mut self, variant: usize) -> Result<Made, LabError>;

    /// Ends a service that stayed up between runs. Returns what did not end as it
    /// should.
    ///
    /// # Errors
    /// [`LabError::Io`] and its kin.
    fn end(&mut self) -> Result<Option<String>, LabError> {
        Ok(None)
    }

    /// Processor time of all that it started, in nanoseconds; `None` where only
    /// the kernel's account of waited-for children has it.
    fn children_ns(&self) -> Option<u64> {
        None
    }

    /// What the runs showed that is in no record.
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }
}

/// What each variant needs, and what it is.
pub fn launches(settings: &[Settings], variants: &[VariantRecord]) -> Vec<(Launch, Role)> {
    let all = settings.iter().zip(variants);
    all.map(|(settings, variant)| (settings.launch(), variant.role))
        .collect()
}

/// What is the same for every run of these variants: the filter beneath them as well.
pub fn options(request: &Request, launches: &[(Launch, Role)]) -> Options {
    Options {
        allocator_dir: request.allocator_dir.clone(),
        reach: request.reach,
        heap: request.heap,
        ground: seccomp::ground(launches.iter().map(|(launch, _)| launch), &request.reach),
        ..Options::default()
    }
}

/// By how much larger the environment of the next round pair is.
pub fn next_padding(rng: &mut Rng) -> usize {
    usize::try_from(rng.below(PADDING / 16)).unwrap_or(0) * 16
}

/// Each run's emulated disk draws for itself, in the same order when the
/// comparison is repeated with its seed.
pub fn disk_seed(seed: u64, prepared: &Cell<u32>) -> u64 {
    prepared.set(prepared.get().wrapping_add(1));
    seed ^ u64::from(prepared.get()) << 32
}

/// A warning for this number of runs before which something else kept writing.
pub fn unsettled(runs: usize) -> Option<Warning> {
    (runs > 0).then(|| Warning {
        text: match runs {
            1 => "before one run, other writes to the disk did not stop".to_owned(),
            n => format!("before {n} runs, other writes to the disk did not stop"),
        },
        action: "find out what writes, or use another disk".to_owned(),
    })
}

/// What failed, for an error.
pub fn io_error(action: &str) -> impl FnOnce(io::Error) -> LabError {
    let action = action.to_owned();
    move |cause| LabError::Io { action, cause }
}
