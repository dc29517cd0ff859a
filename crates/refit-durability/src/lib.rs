//! The durability check: which renames, acknowledgements and removals of a program no sync covers.
//!
//! Processes tell what they do to files ([`refit_session::file_events`]); [`Reader`] follows them while the program
//! runs, and [`Model`] holds what a power cut could take at each moment: data that no sync has covered since it was
//! written, and names that no sync of their directory has covered since they were made. A [`Rule`] is a condition on
//! that; a [`Finding`] is a place in the program that breaks one.
//!
//! What is judged is what POSIX and the manual pages promise. What a file system keeps beyond that is told beside it.

mod acknowledgement;
mod file_systems;
mod finding;
mod ignored;
mod model;
mod reader;
mod rule;
mod stack_table;

pub use acknowledgement::Ack;
pub use finding::{
    AcknowledgedBy, CUT, Circumstance, DurabilityReport, Finding, Level, RemovedSyncs, WrongSync,
};
pub use ignored::Ignored;
pub use model::{Group, Judged, Judgement, Model};
pub use reader::Reader;
pub use rule::Rule;
pub use stack_table::StackId;
