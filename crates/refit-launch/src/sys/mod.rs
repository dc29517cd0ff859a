//! The only place in this crate with unsafe code: the kernel and our C.

mod group;
pub mod supervise;
pub mod target;
pub mod thp;
