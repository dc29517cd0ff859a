//! x86-64, beside which programs of i386 and x32 run (arch/x86/entry/syscalls).

use super::{Calls, OtherAbi};

/// As people write it.
pub const NAME: &str = "x86-64";
/// Where refit is tested for it.
pub const TESTED: &str = "on its processors";

/// Of the programs that refit is built for.
pub const NATIVE: Calls = Calls {
    audit: 0xc000_003e,
    is_narrow: false,
    fsync: 74,
    fdatasync: 75,
    sync: 162,
    syncfs: 306,
    sync_file_range: 277,
    range_offset: 1,
    range_length: 2,
    range_flags: 3,
    msync: 26,
    open: Some(2),
    openat: 257,
    openat2: 437,
    pwritev2: 328,
    io_uring_setup: 425,
    seccomp: 317,
    landlock_restrict_self: 446,
};

/// Of the 32-bit programs that the same kernel runs: i386.
pub const COMPAT: Calls = Calls {
    audit: 0x4000_0003,
    is_narrow: true,
    fsync: 118,
    fdatasync: 148,
    sync: 36,
    syncfs: 344,
    sync_file_range: 314,
    range_offset: 1,
    range_length: 3,
    range_flags: 5,
    msync: 144,
    open: Some(5),
    openat: 295,
    openat2: 437,
    pwritev2: 379,
    io_uring_setup: 425,
    seccomp: 354,
    landlock_restrict_self: 446,
};

/// x32. Its pwritev2 has the position in one argument.
pub const OTHER_ABI: Option<OtherAbi> = Some(OtherAbi {
    bit: 0x4000_0000,
    pwritev2: 547,
    pwritev2_flags: 4,
});

/// Other calls of [`NATIVE`].
pub(crate) const MMAP: u32 = 9;
pub(crate) const IO_SUBMIT: u32 = 209;
pub(crate) const IO_URING_ENTER: u32 = 426;

/// O_LARGEFILE: implied in 64-bit programs, explicit in 32-bit ones. The same bit in both.
pub(crate) const LARGEFILE: i32 = 0o100_000;

/// e_machine of an executable (elf(5)): EM_X86_64.
pub const ELF_MACHINE: u16 = 62;

/// libseccomp's names of the architectures that a kernel may run programs of.
pub const SECCOMP_NAMES: &[&str] = &["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"];

/// Where Debian has libraries of this architecture.
pub(crate) const LIBRARIES: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"];

/// The instruction `syscall` (Intel's manual, volume 2).
pub(crate) const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Whether one of the instructions in `code` loads such a number for a call into eax or rax, or stores it on the
/// stack, from where code that is not optimised loads it.
pub(crate) fn loads_number(code: &[u8], is_wanted: impl Fn(u32) -> bool) -> bool {
    let is_number = |bytes: &[u8]| {
        let bytes = bytes.try_into().expect("four bytes");
        is_wanted(u32::from_le_bytes(bytes))
    };
    let mut short = code.windows(5);
    let mut long = code.windows(7);
    // MOV r/m32, imm32 and MOV r/m64, imm32: -N(%rbp), or N(%rsp).
    let mut below_rbp = code.windows(7);
    let mut above_rsp = code.windows(8);
    below_rbp.any(|w| w[..2] == [0xc7, 0x45] && is_number(&w[3..7]))
        || above_rsp.any(|w| w[..3] == [0xc7, 0x44, 0x24] && is_number(&w[4..8]))
        || short.any(|w| w[0] == 0xb8 && is_number(&w[1..5]))
        || long.any(|w| w[..3] == [0x48, 0xc7, 0xc0] && is_number(&w[3..7]))
}

/// Whether one of the instructions in `code` compares a result with -4095 (all errors).
pub(crate) fn compares_with_errors(code: &[u8]) -> bool {
    code.windows(6)
        .any(|w| w == [0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff])
}

/// What the functions above find, as compilers write it: a call of fsync, a call of getpid, a wrapper for any number.
#[cfg(test)]
pub(crate) const EXAMPLES: [&[u8]; 3] = [
    &[0xb8, 74, 0, 0, 0, 0x0f, 0x05, 0xc3],
    &[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3],
    &[0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff],
];
