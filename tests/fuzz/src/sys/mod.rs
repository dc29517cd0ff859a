//! What only the kernel, the allocator and the compiler's counters tell.

pub mod allocator;
pub mod clock;
pub mod coverage;
pub mod current;
