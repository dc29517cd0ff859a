//! Comparisons: which variant is better than the baseline, by how much, and how
//! certain that is.
//!
//! [`tune`] makes one comparison after the other: it observes, proposes, screens, and confirms.
//!
//! [`compare`] makes the runs. What was run is an [`Experiment`]; what it shows are its
//! [`Effects`]; both together, as they are stored, are a [`Comparison`].
//!
//! What it promises: every variant runs over the same library and with an environment
//! of the same size; runs go in mirrored rounds; nothing is deleted before the
//! comparison has ended; a variant whose outcome differs is disqualified.

mod compare;
mod comparison;
mod copies;
mod effects;
mod error;
pub mod experiment;
mod gate;
mod in_effect;
mod length;
mod memory_growth;
mod memory_reason;
mod memory_runs;
mod metric;
mod never_syncs;
mod pool;
mod probe;
mod replicas;
mod request;
mod rounds;
mod scan;
mod step_class;
mod times;
mod tune;
mod variants;
mod verdict;
mod warnings;
mod witness_runs;
mod writeback;

pub use compare::{Remains, compare};
pub use comparison::Comparison;
pub use comparison::check::{Checked, check as check_recipe};
pub use effects::{EffectRecord, Effects};
pub use error::LabError;
pub use experiment::Experiment;
pub use gate::{Gate, GateAnswer, GateError, GateRecord};
pub use memory_growth::{MemoryWatch, NoSample};
pub use memory_reason::{GrowingCause, MemoryAnswer, MemoryCause, MemoryReason};
pub use metric::{Metric, measure};
pub use never_syncs::NeverSyncs;
#[cfg(feature = "schema")]
pub use pool::schema as pool_schema;
pub use pool::{
    FactorRecord, GroupRecord, MachineEffect, MachineRecord, NotPooled, POOL_SCHEMA, Pool,
    PoolError, PoolInput, PooledEffect, PooledVariant, ResultRecord, pool,
};
pub use probe::{DiskProfile, ProbeError, Stalls, probe};
pub use replicas::{Loaded, ReplicaError, Replicas};
pub use request::{CommandSubject, DEFAULT_BUDGET, RecipeSubject, Request, Subject};
pub use rounds::Progress;
#[cfg(feature = "schema")]
pub use scan::schema as scan_schema;
pub use scan::{SCAN_SCHEMA, Scan, ScanPoint};
pub use times::TimesRecord;
#[cfg(feature = "schema")]
pub use tune::tuning_schema;
pub use tune::{
    Answer, Evidence, Journal, Outcome, ProofRecord, ProposalRecord, Risk, Step, StepKind,
    TUNING_SCHEMA, Tuning, tune,
};
pub use verdict::Verdict;
pub use warnings::Warning;
