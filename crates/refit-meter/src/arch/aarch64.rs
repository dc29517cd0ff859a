//! arm64.

pub use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as StackUnwinder};
use framehop::aarch64::{PtrAuthMask, UnwindRegsAarch64};
use object::elf;

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

/// Registers of a function that called others: the instruction, the stack pointer and the frame pointer. What it
/// returns to is on its stack.
pub fn registers([_, stack, frame]: [u64; 3]) -> UnwindRegsAarch64 {
    UnwindRegsAarch64::new_with_ptr_auth_mask(ADDRESS, 0, stack, frame)
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
