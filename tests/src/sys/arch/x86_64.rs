//! x86-64.

use std::io;

use super::super::kill_point::{registers, set_registers};

pub type Registers = libc::user_regs_struct;

/// Those that change files, beside those that take a directory's descriptor.
pub const CHANGING: &[i64] = &[
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_link,
    libc::SYS_symlink,
];

/// Those that start a process, beside clone.
pub const STARTING: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];

/// System calls by which ld.so maps a library, beyond those of x86-64 and munmap.
pub const MORE_TO_MAP: usize = 0;

/// The number of the call that is entered, and its arguments.
pub fn call(registers: &Registers) -> (i64, [u64; 3]) {
    let arguments = [registers.rdi, registers.rsi, registers.rdx];
    (registers.orig_rax.cast_signed(), arguments)
}

/// At its entry: the call is none, and not made.
pub fn skip_call(pid: i32) -> io::Result<()> {
    let mut registers = registers(pid)?;
    registers.orig_rax = u64::MAX;
    set_registers(pid, registers)
}

/// At its end: what it returned.
pub fn set_result(registers: &mut Registers, result: i64) {
    registers.rax = result.cast_unsigned();
}
