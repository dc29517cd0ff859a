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
