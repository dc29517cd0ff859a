//! From a [`refit_knobs::Launch`] to a running, supervised process tree.
//!
//! [`prepare`] checks everything that can be checked and builds what the
//! program will find: the placed library, the session directory, its
//! environment. Nothing of the program has run until [`Prepared::run`]. After
//! that a failure of refit is said, and never replaces the program's own end.

pub mod allocator;
mod environment;
mod error;
pub mod place;
mod prepare;
pub mod session;
mod sys;
pub mod target;
pub mod thp;

pub use error::LaunchError;
pub use prepare::{Options, Prepared, prepare};
pub use sys::supervise::{
    End, Ended, StartError, Usage, count_interruptions, end_as, interruptions, with_first_signals,
};
