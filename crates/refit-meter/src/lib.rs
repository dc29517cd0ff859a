//! What the kernel reports of a process tree: processes, memory, usage, pressure,
//! the durable calls that reached a filesystem ([`Witness`]), and what an
//! executable file contains.
//!
//! Read-only: nothing here changes a program.

mod executable;
mod holders;
mod memory;
mod pressure;
mod sampler;
mod stat;
mod tree;
mod usage;
mod witness;

pub use executable::ElfFacts;
pub use holders::uses_directory;
pub use memory::{MemorySample, memory_available, memory_sample};
pub use pressure::Pressure;
pub use sampler::MemorySampler;
pub use tree::{descendants, has_ended, process_name, top_of};
pub use usage::{TreeUsage, tree_usage};
pub use witness::{Caller, Directory, Testimony, Witness, Witnessed};
