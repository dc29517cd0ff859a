//! What a session's images counted, and what that says of a run.
//!
//! Read-only: nothing here changes a program. [`Collector`] reads the image
//! files while the program runs, [`RunReport`] is what is known at the end.

mod collector;
mod executable;
mod living;
mod metrics;
mod report;
mod sys;

pub use collector::{Collector, session_in_use};
pub use executable::{ElfFacts, has_own_syscalls};
pub use metrics::{Metrics, Pressure};
pub use report::{
    Calls, Coverage, ExecutableReport, OPENING, Outcome, Run, RunReport, SCHEMA, SettingReport,
    Survivor, Unknown, UnreachedProgram,
};
