//! From a [`refit_knobs::Launch`] to a running, supervised process tree.
//!
//! [`prepare`] checks everything that can be checked and builds what the
//! program will find: the placed library, the session directory, its
//! environment. Nothing of the program has run until [`Prepared::run`]. After
//! that a failure of refit is reported, and never replaces the program's own end.

pub mod allocator;
mod allocator_options;
pub mod disk;
mod environment;
mod error;
pub mod filter;
mod guardian;
pub mod library;
pub mod own_syscalls;
mod planned_filter;
mod prepare;
pub mod privileged;
mod scope;
pub mod seccomp;
mod sys;
pub mod target;
pub mod thp;
mod zone;

pub use error::LaunchError;
pub use prepare::{Options, Prepared, prepare};
pub use sys::ended::{End, Ended, StartError, Usage};
pub use sys::fork::check_single_thread;
pub use sys::interruption::{
    count_interruptions, doze, interrupting_signal, interruptions, on_interruption,
};
pub use sys::program::with_first_signals;
pub use sys::running::Running;
pub use sys::supervise::end_as;
