//! The settings that refit understands: parse a word of one or of several, print it back, explain it, class its
//! risk, and turn a list of them into a [`Launch`].
//!
//! Promises: nothing here executes, reads or writes anything; a word that parses prints as a canonical word
//! that parses to the same; a word that does not parse yields one sentence that names the offending
//! text, what was expected, and what to type next.
//!
//! Refuses: guessing. An alias or a near miss is suggested, never silently accepted.
//!
//! A knob is one file in `knob/` and its lines in the table at the top of `knob/mod.rs`.

mod class;
mod error;
mod explain;
mod joined;
mod knob;
mod launch;
mod nearest;
mod scope;
mod setting;
mod settings;
mod variant;
mod word;

pub use class::Class;
pub use error::{Hint, SettingError};
pub use explain::Explanation;
pub use knob::{KNOBS, Knob};
pub use launch::{Allocator, AllocatorKind, Disk, DiskRule, Launch, SwitchRule, Thp, When};
pub use scope::{ExeName, ExeNameProblem, PathProblem, Scope};
pub use setting::Setting;
pub use settings::Settings;
pub use variant::Variant;

#[cfg(test)]
mod properties;
