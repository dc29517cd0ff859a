//! What needs the kernel by hand: loop devices, namespaces, processes.

pub mod loopback;
pub mod process;
