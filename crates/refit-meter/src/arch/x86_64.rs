//! x86-64.

use framehop::x86_64::UnwindRegsX86_64;
pub use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as StackUnwinder};
use object::elf;

/// Numbers of the relocations of this machine that hold an address of a symbol, in a slot of the linkage table, of the
/// global offset table, and in data (psABI). With a slot of the first kind a function may be bound at its first call.
pub const ADDRESS_RELOCATIONS: [u32; 3] = [
    elf::R_X86_64_JUMP_SLOT,
    elf::R_X86_64_GLOB_DAT,
    elf::R_X86_64_64,
];

/// Registers of a function that called others: the instruction, the stack pointer and the frame pointer.
pub fn registers([instruction, stack, frame]: [u64; 3]) -> UnwindRegsX86_64 {
    UnwindRegsX86_64::new(instruction, stack, frame)
}
