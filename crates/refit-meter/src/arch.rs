//! What belongs to an architecture, a file for each: the relocations that put a function's address into a slot, and the
//! registers that a stack is unwound from.

#[cfg_attr(target_arch = "x86_64", path = "arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
mod this;

pub use this::*;
