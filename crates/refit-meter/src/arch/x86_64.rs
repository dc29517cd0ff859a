//! x86-64.

use framehop::x86_64::UnwindRegsX86_64;
pub use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as StackUnwinder};
use object::elf;

use crate::stacks::Registers;

/// Numbers of the relocations of this machine that hold an address of a symbol, in a slot of the linkage table, of the
/// global offset table, and in data (psABI). With a slot of the first kind a function may be bound at its first call.
pub const ADDRESS_RELOCATIONS: [u32; 3] = [
    elf::R_X86_64_JUMP_SLOT,
    elf::R_X86_64_GLOB_DAT,
    elf::R_X86_64_64,
];

/// For the unwinder.
pub fn registers(of: Registers) -> UnwindRegsX86_64 {
    UnwindRegsX86_64::new(of.instruction, of.stack, of.frame)
}

/// The registers that a sample of the kernel's has, as bits: rbp, rsp, rip (arch/x86/include/uapi/asm/perf_regs.h).
pub const SAMPLED_REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

/// Those, in the order of their bits.
pub fn sampled(
    [frame, stack, instruction]: [u64; SAMPLED_REGISTERS.count_ones() as usize],
) -> Registers {
    Registers {
        instruction,
        stack,
        frame,
        link: 0,
    }
}

/// Calls about names of files that newer machines do not have.
pub const FILE_CALLS: [i64; 14] = [
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_unlink,
    libc::SYS_readlink,
    libc::SYS_chmod,
    libc::SYS_getdents,
];
/// Calls that make a process and that newer machines do not have.
pub const FORK_CALLS: [i64; 2] = [libc::SYS_fork, libc::SYS_vfork];
/// Calls that wait for a signal and that newer machines do not have.
pub const PAUSE_CALLS: [i64; 1] = [libc::SYS_pause];

/// How a call that newer machines do not have waits for descriptors; `None`: it is no such call.
pub fn poll_call(number: i64) -> Option<super::DescriptorWait> {
    match number {
        libc::SYS_poll => Some(super::DescriptorWait::Poll),
        libc::SYS_select => Some(super::DescriptorWait::Select),
        libc::SYS_epoll_wait => Some(super::DescriptorWait::Epoll),
        _ => None,
    }
}
