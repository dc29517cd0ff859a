//! What belongs to an architecture: the relocations that put a function's address into a slot.

use object::elf;

/// Numbers of the relocations of this machine that hold an address of a symbol, in a slot of the linkage table, of the
/// global offset table, and in data (psABI of each architecture). With a slot of the first kind a function may be
/// bound at its first call.
#[cfg(target_arch = "x86_64")]
pub const ADDRESS_RELOCATIONS: [u32; 3] = [
    elf::R_X86_64_JUMP_SLOT,
    elf::R_X86_64_GLOB_DAT,
    elf::R_X86_64_64,
];
#[cfg(target_arch = "aarch64")]
pub const ADDRESS_RELOCATIONS: [u32; 3] = [
    elf::R_AARCH64_JUMP_SLOT,
    elf::R_AARCH64_GLOB_DAT,
    elf::R_AARCH64_ABS64,
];
