//! System calls made by hand: loop devices, namespaces, processes.

pub mod loopback;
pub mod process;
