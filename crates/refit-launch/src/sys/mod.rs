//! The only place in this crate with unsafe code: the kernel and our C.

use std::time::Duration;

pub mod board;
pub mod disk;
pub mod ended;
mod group;
pub mod interruption;
pub mod pattern;
pub mod program;
pub mod running;
pub mod supervise;
pub mod target;
pub mod thp;

/// How often a parent looks up from waiting.
const TICK: Duration = Duration::from_millis(100);
