//! The only place in this crate with unsafe code: the kernel and our C.

use std::time::Duration;

pub mod answer;
pub mod disk;
pub mod ended;
mod exec_arguments;
pub mod filter;
pub mod first_signals;
pub mod fork;
mod group;
pub mod interruption;
pub mod namespaces;
pub mod notify;
pub mod pattern;
pub mod program;
pub mod running;
pub mod shared_memory;
mod spawner;
pub mod standby;
pub mod started;
pub mod supervise;
pub mod target;
pub mod thp;

/// How often a parent looks up from waiting. The witness has room for what any
/// program can do in between (70,000 durable calls a second on each processor).
const TICK: Duration = Duration::from_millis(50);
