//! The only place in this crate with unsafe code.

pub mod event_ring;
pub mod file_ring;
pub mod lease;
