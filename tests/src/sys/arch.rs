//! What belongs to an architecture, a file for each: where a tracer finds a system call, and the calls that only some
//! architectures have.

#[cfg_attr(target_arch = "x86_64", path = "arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
mod this;

pub use this::*;
