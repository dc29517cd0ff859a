//! arm64.

pub use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as StackUnwinder};
use framehop::aarch64::{PtrAuthMask, UnwindRegsAarch64};
use object::elf;

use crate::stacks::Registers;

/// Numbers of the relocations of this machine that hold an address of a symbol, in a slot of the linkage table, of the
/// global offset table, and in data (psABI). With a slot of the first kind a function may be bound at its first call.
pub const ADDRESS_RELOCATIONS: [u32; 3] = [
    elf::R_AARCH64_JUMP_SLOT,
    elf::R_AARCH64_GLOB_DAT,
    elf::R_AARCH64_ABS64,
];

/// Addresses of code have no more bits: those above may hold a return address's signature (the kernel's
/// arch/arm64/pointer-authentication.rst).
const ADDRESS: PtrAuthMask = PtrAuthMask((1 << 48) - 1);

/// For the unwinder. Without a link register the function called others, and what it returns to is on its stack.
pub fn registers(of: Registers) -> UnwindRegsAarch64 {
    UnwindRegsAarch64::new_with_ptr_auth_mask(ADDRESS, of.link, of.stack, of.frame)
}

/// The registers that a sample of the kernel's has, as bits: x29, lr, sp, pc (arch/arm64/include/uapi/asm/perf_regs.h).
pub const SAMPLED_REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// Those, in the order of their bits.
pub fn sampled(
    [frame, link, stack, instruction]: [u64; SAMPLED_REGISTERS.count_ones() as usize],
) -> Registers {
    Registers {
        instruction,
        stack,
        frame,
        link,
    }
}

/// Older calls about names of files: this machine has none.
pub const FILE_CALLS: [i64; 0] = [];
/// Older calls that make a process: this machine has none.
pub const FORK_CALLS: [i64; 0] = [];
/// Older calls that wait for a signal: this machine has none.
pub const PAUSE_CALLS: [i64; 0] = [];

/// How an older call waits for descriptors: this machine has no such call.
pub fn poll_call(_: i64) -> Option<super::DescriptorWait> {
    None
}
