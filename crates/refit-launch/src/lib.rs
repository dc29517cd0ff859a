//! From a [`refit_knobs::Launch`] to a running, supervised process tree.
//!
//! [`prepare`] checks everything that can be checked and builds what the
//! program will find: the placed library, the session directory, its
//! environment. Nothing of the program has run until [`Prepared::run`]. After
//! that a failure of refit is reported, and never replaces the program's own end.

pub mod allocator;
pub mod allocator_options;
pub mod arch;
pub mod disk;
mod emulator;
mod environment;
mod error;
pub mod filter;
#[cfg(test)]
mod fuzz;
mod guardian;
pub mod library;
mod options;
pub mod own_syscalls;
mod planned_filter;
mod policy_rules;
mod prepare;
pub mod privileged;
mod scope;
pub mod seccomp;
mod sys;
pub mod target;
pub mod thp;
pub mod zone;

pub use emulator::emulator;
pub use error::LaunchError;
pub use options::Options;
pub use prepare::{Prepared, prepare};
pub use sys::answer::{Asked, Worker, answer_within};
pub use sys::ended::{End, Ended, Usage};
pub use sys::first_signals::with_first_signals;
pub use sys::fork::fork;
pub use sys::interruption::{
    count_interruptions, doze, interrupt, interrupting_signal, interruptions, on_interruption,
};
pub use sys::namespaces;
pub use sys::running::Running;
pub use sys::started::StartError;
pub use sys::supervise::end_as;
