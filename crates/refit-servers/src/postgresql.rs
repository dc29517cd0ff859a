//! PostgreSQL: its configuration, and where its programs lie.

pub mod conf;
mod place;

pub use place::{directory, program, version_of};
