//! One run of a program: launched, watched while it runs, and put together into
//! one record from what the program's images, the guardian and the kernel report.
//!
//! [`Watch`] observes a prepared program and ends in a [`Run`]; [`Tree`] knows
//! the processes of a service and ends them; [`fingerprint`] and [`machine_load`]
//! describe the machine meanwhile. [`machine`] and [`reachability`] tell before a
//! run what can be swapped, [`process`] of a program that runs.

mod advice;
mod coverage;
mod cpu_sampling;
mod durability_check;
mod escape;
pub mod fingerprint;
mod identity;
mod in_effect;
mod library_class;
pub mod machine;
pub mod machine_load;
pub mod metric;
pub mod process;
mod process_variables;
mod purge;
pub mod reachability;
mod repetition;
mod report;
mod run;
#[cfg(feature = "schema")]
mod schema;
pub mod series;
mod serves_malloc;
mod service_record;
mod trace_file;
pub mod tree;
mod tree_parts;
mod watch;
mod why_not;

pub use advice::{Advice, Proposal, Reason, advice};
pub use coverage::{Coverage, FilterReport, OtherDefinitions, Reached, Unknown};
pub use durability_check::DurabilityCheck;
pub use escape::{Escape, counted_fsyncs, escaped};
pub use identity::{IdentityTerm, MemoryIdentity};
pub use in_effect::{InEffect, OPEN_SYNC};
pub use library_class::{class_of, explain, replaced_syncs};
pub use purge::{Purge, PurgeAnswer};
pub use repetition::{Before, Input, Repetition};
pub use report::{RunReport, SCHEMA, SettingReport};
pub use run::{Metrics, Outcome, Run, Survivor};
#[cfg(feature = "schema")]
pub use schema::stored_schema;
pub use serves_malloc::{is_allocator, server_of};
pub use service_record::ServiceRecord;
pub use trace_file::TraceFile;
pub use tree::Tree;
pub use tree_parts::TreeParts;
pub use watch::Watch;
pub use why_not::{MallocServer, Reasons, UncountedCaller, WhyNot};

pub use refit_knobs::{AllocatorKind, Explanation};
// Whoever makes runs gets all that they are made of from here: how a program is
// launched, and what is read of it.
pub use cpu_sampling::CpuSampling;
pub use refit_durability::{
    Ack, AcknowledgedBy, CUT, Circumstance, DurabilityReport, Finding, Ignored, Level, Rule,
    WrongSync,
};
pub use refit_launch::{
    End, Ended, LaunchError, Options, Prepared, Running, StartError, Usage, allocator,
    allocator_options, answer_within, arch, count_interruptions, disk, doze, fork, interrupt,
    interrupting_signal, interruptions, namespaces, on_interruption, prepare, seccomp,
    with_first_signals, zone,
};
pub use refit_meter::{
    Activity, CallPath, Caller, CpuPath, CpuPaths, CpuProfile, Directory, ElfFacts, Frame,
    HeapPaths, MEMORY_PARTS, MappedMemory, MappingClass, Memory, MemoryPart, MemorySample,
    MemorySampler, OutsideSyncs, Pressure, SharedPages, Testimony, TimeAccount, TreeUsage, Witness,
    Witnessed, descendants, fork_copies, has_ended, huge_exposure, mapped_memory, memory_available,
    memory_sample, process_name, top_of, tree_usage, uses_directory,
};
#[cfg(feature = "schema")]
pub use refit_session::calls_by_kind;
pub use refit_session::file_events::{Acknowledges, FileId};
pub use refit_session::heap::{
    ExecutableHeap, HeapReport, HeapSize, LargestHeap, SizeClass, SizeFit, UncountedHeap,
    WithoutTable,
};
pub use refit_session::{
    Calls, DirectoryReport, EventRing, ExecutableReport, LAUNCHER, OPENING, Trace,
    UnreachedProgram, grouped, is_tmpfs, names::OwnName, open_of, open_own, open_regular,
    printable,
};
