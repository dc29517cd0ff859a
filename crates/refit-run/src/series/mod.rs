//! What already runs, watched over time without touching it: who waits for durable
//! writes, where memory is, and how it grows.
//!
//! [`Watcher`] reads; [`Series`] is the record. Nothing is stopped, traced or written to.

mod budget;
mod groups;
mod growth;
mod huge_pages;
mod known;
mod live_heap;
mod mapping_sizes;
mod readings;
mod recipe_groups;
mod record;
mod sync_shares;
mod target;
mod thinning;
mod watcher;

pub use growth::{Growth, HeapGrowth, LEAST as LEAST_FOR_GROWTH, growth, heap_growth};
pub use known::Member;
pub use mapping_sizes::mapping_sizes;
#[cfg(feature = "schema")]
pub use record::schema;
pub use record::{
    Caller as SyncCaller, Cost, Group, GroupKind, GroupSample, HeapCoverage, HugePages, LiveHeap,
    SERIES_SCHEMA, Sample, Series, SyncDirectory, Syncs, Witnessing,
};
pub use target::{Instances, Target, instances_of_unit};
pub use watcher::Watcher;
