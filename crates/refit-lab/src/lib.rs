//! Comparisons: which variant of the ground beneath a command is better, by how
//! much, and how sure that is.
//!
//! [`compare`] makes the runs and owns the [`Experiment`] that comes of it. What
//! it promises: every variant stands on the same library and an environment of
//! the same size; runs go in mirrored rounds; nothing is deleted before the
//! comparison has ended; a variant whose outcome differs takes no part.

mod available;
mod comparison;
mod conf_steps;
mod copies;
mod effects;
mod error;
pub mod experiment;
mod gate;
mod metric;
mod place;
mod ports;
mod probe;
mod request;
mod settle;
mod tool;
mod verdict;
mod warnings;

pub use available::{Available, available};
pub use comparison::check::{Checked, check as check_recipe};
pub use comparison::{Progress, compare};
pub use error::LabError;
pub use experiment::Experiment;
pub use gate::{Gate, GateAnswer, GateError};
pub use metric::{Metric, Unit};
pub use place::{DEFAULT_BASE, remove_abandoned as remove_abandoned_instances};
pub use probe::{DiskProfile, ProbeError, Stalls, probe};
pub use request::Request;
pub use verdict::Verdict;
