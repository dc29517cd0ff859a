//! What the kernel reports of a process tree: processes, memory, usage, pressure,
//! the durable calls that reached a filesystem ([`Witness`]), and what an
//! executable file contains.
//!
//! Read-only: nothing here changes a program.

mod arch;
mod arena;
mod cgroup;
mod cpu_profile;
mod executable;
mod fork_copies;
mod fork_room;
#[cfg(test)]
mod fuzz;
mod heap_paths;
mod holders;
mod loaded;
mod mapping_classes;
mod mappings;
mod memory;
mod memory_parts;
mod page_use;
mod pages;
mod perf;
mod pressure;
mod process_facts;
mod process_memory;
mod process_table;
mod sampler;
mod stacks;
mod stat;
mod time_account;
mod tree;
mod usage;
mod witness;

pub use cgroup::{Cgroups, Charged, Membership};
pub use cpu_profile::{CpuPath, CpuPaths, CpuProfile, CpuReader};
pub use executable::ElfFacts;
pub use fork_copies::fork_copies;
pub use fork_room::{anonymous_bytes, fork_obstacle};
pub use heap_paths::{CallPath, HeapPaths, heap_paths};
pub use holders::uses_directory;
pub use loaded::{Bound, Import, LoadedObject, MALLOC_FAMILY, NotLoaded, loaded_objects};
pub use mapping_classes::{
    ClassBytes, MAPPING_CLASSES, MappedMemory, MappingClass, class_of, mapped_memory,
};
pub use mappings::{Mapping, mappings};
pub use memory::{MemorySample, memory_available, memory_sample};
pub use memory_parts::{CountedProcess, MEMORY_PARTS, MemoryPart, MemoryParts, PartBytes};
pub use pages::{CopiedBytes, HugeExposure, SharedPages, huge_exposure, huge_pages_could_add};
pub use pressure::Pressure;
pub use process_facts::{Life, ProcessFacts, process_facts};
pub use process_memory::{Memory, MemoryReading, process_memory};
pub use process_table::{Process, ProcessTable};
pub use sampler::MemorySampler;
pub use stacks::{Frame, Gaps, MappedCode, Objects, ProcessCode, Registers, Trace, with_script};
pub use stat::threads;
pub use time_account::{Activity, TimeAccount, TimeSampler};
pub use tree::{descendants, has_ended, process_name, top_of};
pub use usage::{TreeUsage, tree_usage};
pub use witness::{
    Caller, Directory, OutsideSyncs, ProcessSyncs, SyncWatch, Testimony, Witness, Witnessed,
};
