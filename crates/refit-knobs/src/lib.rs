//! The settings that refit understands: parse a word of one or of several, print it back, explain it, class its
//! risk, and turn a list of them into a [`Launch`].
//!
//! Promises: nothing here executes, reads or writes anything; a word that parses prints as a canonical word
//! that parses to the same; a word that does not parse yields one sentence that names the offending
//! text, what was expected, and what to type next.
//!
//! Refuses: guessing. An alias or a near miss is suggested, never silently accepted.
//!
//! A knob is one file in `knobs/` and its line in the table of `knobs.rs`; an allocator one in `allocators/`.

mod allocators;
mod candidates;
mod environment;
mod error;
mod explain;
mod grammar;
mod ground;
mod joined;
mod knob;
mod knobs;
mod launch;
mod nearest;
mod scope;
mod setting;
mod settings;
mod word;

pub use allocators::{ALLOCATORS, AllocatorKind, NamedAllocator, Tells, Variable};
pub use candidates::{Candidate, candidates};
pub use environment::{Assignment, Join, Preload, holds};
pub use error::{Hint, SettingError};
pub use explain::{Class, Explanation};
pub use ground::Ground;
pub use knob::Knob;
pub use knobs::KNOBS;
pub use launch::{Allocator, Disk, DiskRule, Launch, SwitchRule, Thp, When};
pub use nearest::near;
pub use scope::{ExeName, ExeNameProblem, PathProblem, Scope};
pub use setting::Setting;
pub use settings::{Settings, Variant};

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod properties;
