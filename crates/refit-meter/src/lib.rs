//! What a session's images counted, and what that says of a run.
//!
//! Read-only: nothing here changes a program. [`Collector`] reads the image
//! files while the program runs, [`Witness`] asks the kernel, [`RunReport`] is
//! what is known at the end.

mod collector;
mod executable;
mod filter;
mod holders;
mod living;
mod memory;
mod metrics;
mod report;
mod sampler;
mod stat;
mod tree;
mod usage;
mod witness;

pub use collector::Collector;
pub use executable::{ElfFacts, has_own_syscalls};
pub use filter::{Filter, FilterReport, Reached};
pub use holders::uses_directory;
pub use memory::{MemorySample, memory_available, memory_sample};
pub use metrics::{Metrics, Pressure};
pub use report::{
    Calls, Coverage, DirectoryReport, ExecutableReport, OPENING, Outcome, Run, RunReport, SCHEMA,
    SettingReport, Survivor, Unknown, UnreachedProgram,
};
pub use sampler::MemorySampler;
pub use tree::{descendants, process_name, top_of};
pub use usage::{TreeUsage, tree_usage};
pub use witness::{Caller, Directory, Escape, Testimony, Witness, Witnessed, escaped};
