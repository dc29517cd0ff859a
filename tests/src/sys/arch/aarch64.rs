//! arm64.

use std::io;

use super::super::kill_point::set_register_set;

pub type Registers = libc::user_regs_struct;

/// Those that change files, beside those that take a directory's descriptor and have another form elsewhere.
pub const CHANGING: &[i64] = &[libc::SYS_symlinkat];

/// Those that start a process, beside clone: there are none.
pub const STARTING: &[i64] = &[];

/// System calls by which ld.so maps a library, beyond those of x86-64 and munmap: libraries are aligned to 64 KiB, so it
/// reserves more first, and protects what lies between their parts.
pub const MORE_TO_MAP: usize = 2;

/// The number of the call that is entered, and its arguments.
pub fn call(registers: &Registers) -> (i64, [u64; 3]) {
    let [first, second, third, ..] = registers.regs;
    (registers.regs[8].cast_signed(), [first, second, third])
}

/// At its entry: the call is none, and not made.
pub fn skip_call(pid: i32) -> io::Result<()> {
    const NT_ARM_SYSTEM_CALL: i32 = 0x404; // elf(5) of the kernel, linux/elf.h
    set_register_set(pid, NT_ARM_SYSTEM_CALL, -1_i32)
}

/// At its end: what it returned.
pub fn set_result(registers: &mut Registers, result: i64) {
    registers.regs[0] = result.cast_unsigned();
}
