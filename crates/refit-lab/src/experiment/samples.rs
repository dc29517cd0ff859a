//! The runs of a comparison, as they were made.

use std::collections::BTreeMap;

use refit_recipe::AnswerRecord;
use refit_run::{Run, ServiceRecord};
use serde::{Deserialize, Serialize};

/// Why a run does not count that did not fail.
pub const INCOMPLETE: &str = "its round pair was not completed";
/// Why a run does not count that ended well beside one that did not.
pub const OF_ANOTHER: &str = "another run of its round pair failed";

/// Every run, in the order in which they were made.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Samples(Vec<RunRecord>);

/// One run of one variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// Index into `variants`.
    pub variant: usize,
    /// Round pair, from 0; the first is the warm-up.
    pub pair: usize,
    /// 0, or 1 in the mirror image.
    pub round: usize,
    /// Position in the round, from 0.
    pub slot: usize,
    /// Run, recorded and not counted.
    pub warmup: bool,
    /// Seconds from the start of the comparison to the start of the run.
    pub at_s: f64,
    /// Why the run does not count, and its round pair with it.
    pub failure: Option<String>,
    /// What a recipe's load did; `None` for commands, and where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// The record that `refit run` would have written.
    #[serde(flatten)]
    pub run: Run,
}

/// What a recipe's load did in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRecord {
    /// How many operations.
    pub operations: u64,
    /// The measured window in nanoseconds.
    pub window_ns: u64,
    /// What was read from its output, by metric: nanoseconds, bytes, counts, or per second.
    pub values: BTreeMap<String, f64>,
    /// What the check printed.
    pub outcome: String,
    /// Exact answers; stored once, with the variant.
    #[serde(skip)]
    pub answers: Vec<AnswerRecord>,
    /// What each request of an open loop took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<LatencyRecord>,
    /// The service under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceRecord>,
}

/// What the requests of an open loop took in one run, from when each was due until its answer had come.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRecord {
    /// Each time that occurred, in nanoseconds, exact to 0.1 %, and how many requests took it; rising.
    pub counts: Vec<[u64; 2]>,
    /// What refit itself was late by when it sent them, for 99 % of them at most, in nanoseconds.
    pub late_p99_ns: u64,
    /// What refit itself was late by for the latest request, in nanoseconds.
    pub late_max_ns: u64,
    /// Requests for which no connection was free when they were due.
    pub held: u64,
    /// How many connections were open in the end.
    pub connections: usize,
    /// The seed of the times at which they were due.
    pub schedule_seed: u64,
    /// The thread that sent them ran before all ordinary ones (SCHED_FIFO).
    pub ran_first: bool,
}

impl Samples {
    /// One more run.
    pub fn push(&mut self, run: RunRecord) {
        self.0.push(run);
    }

    /// Every run, in the order in which they were made.
    #[must_use]
    pub fn as_slice(&self) -> &[RunRecord] {
        &self.0
    }

    /// Every run, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [RunRecord] {
        &mut self.0
    }

    /// One after the other.
    pub fn iter(&self) -> std::slice::Iter<'_, RunRecord> {
        self.0.iter()
    }

    /// How many there are, with those that do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no run was made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs of one variant that count, in order: those of complete round
    /// pairs after the warm-up.
    pub fn counted(&self, variant: usize) -> impl Iterator<Item = &RunRecord> {
        self.iter()
            .filter(move |run| run.variant == variant && !run.warmup && run.failure.is_none())
    }

    /// How many round pairs count.
    #[must_use]
    pub fn complete_pairs(&self) -> usize {
        self.counted(0).filter(|run| run.round == 1).count()
    }

    /// Makes runs count of which only the round pair was not completed.
    pub fn count_incomplete(&mut self) {
        for run in &mut self.0 {
            if run.failure.as_deref() == Some(INCOMPLETE) {
                run.failure = None;
            }
        }
    }

    /// Makes the warm-up a round pair like any other.
    pub fn count_warmup(&mut self) {
        for run in &mut self.0 {
            run.warmup = false;
        }
    }
}

impl FromIterator<RunRecord> for Samples {
    fn from_iter<I: IntoIterator<Item = RunRecord>>(runs: I) -> Samples {
        Samples(runs.into_iter().collect())
    }
}
