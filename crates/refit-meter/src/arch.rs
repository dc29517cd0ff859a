//! What belongs to an architecture, a file for each: the relocations that put a function's address into a slot, the
//! registers that a stack is unwound from, and system calls that not all machines have.

#[cfg_attr(target_arch = "x86_64", path = "arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
mod this;

/// How a call is told which descriptors it waits for.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    target_arch = "aarch64",
    expect(dead_code, reason = "its calls are those of all machines")
)]
pub enum DescriptorWait {
    /// As poll(2).
    Poll,
    /// As select(2).
    Select,
    /// As epoll_wait(2).
    Epoll,
}

pub use this::*;
