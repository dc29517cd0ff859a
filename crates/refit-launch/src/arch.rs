//! What belongs to an architecture, a file for each: its numbers of system calls, what its executables and libraries
//! are told by, and its system call instruction.

#[cfg_attr(target_arch = "x86_64", path = "arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "arch/aarch64.rs")]
mod this;

pub use this::*;

/// The system calls of an architecture that a filter looks at (syscall(2)).
#[derive(Debug)]
pub struct Calls {
    /// AUDIT_ARCH_*, linux/audit.h.
    pub audit: u32,
    /// Its registers have 32 bits: 64-bit arguments take two, the lower half first, and refit's cookie has no room.
    pub is_narrow: bool,
    pub(crate) fsync: u32,
    pub(crate) fdatasync: u32,
    pub(crate) sync: u32,
    pub(crate) syncfs: u32,
    pub(crate) sync_file_range: u32,
    /// The first registers of its offset and length, and that of its flags.
    pub(crate) range_offset: usize,
    pub(crate) range_length: usize,
    pub(crate) range_flags: usize,
    pub(crate) msync: u32,
    /// Not where openat came first.
    pub(crate) open: Option<u32>,
    pub(crate) openat: u32,
    pub(crate) openat2: u32,
    pub(crate) pwritev2: u32,
    pub(crate) io_uring_setup: u32,
    pub(crate) seccomp: u32,
    pub(crate) landlock_restrict_self: u32,
}

/// Another ABI whose programs have the same AUDIT_ARCH_* and numbers with a bit added.
#[derive(Debug)]
pub struct OtherAbi {
    /// The bit.
    pub bit: u32,
    /// pwritev2 has a number of its own, ...
    pub pwritev2: u32,
    /// ... and its flags in this argument.
    pub pwritev2_flags: usize,
}
