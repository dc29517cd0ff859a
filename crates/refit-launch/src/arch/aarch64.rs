//! arm64, beside which programs of 32-bit ARM may run (include/uapi/asm-generic/unistd.h, arch/arm/tools/syscall.tbl).

use super::{Calls, OtherAbi};

/// As people write it.
pub const NAME: &str = "arm64";
/// Where refit is tested for it.
pub const TESTED: &str = "in a machine that qemu emulates, not on hardware";

/// Of the programs that refit is built for.
pub const NATIVE: Calls = Calls {
    audit: 0xc000_00b7,
    is_narrow: false,
    fsync: 82,
    fdatasync: 83,
    sync: 81,
    syncfs: 267,
    sync_file_range: 84,
    range_offset: 1,
    range_length: 2,
    range_flags: 3,
    msync: 227,
    open: None,
    openat: 56,
    openat2: 437,
    pwritev2: 287,
    io_uring_setup: 425,
    seccomp: 277,
    landlock_restrict_self: 446,
};

/// Of the 32-bit programs that the same kernel runs: ARM with its EABI. Its sync_file_range2 has the flags second.
pub const COMPAT: Calls = Calls {
    audit: 0x4000_0028,
    is_narrow: true,
    fsync: 118,
    fdatasync: 148,
    sync: 36,
    syncfs: 373,
    sync_file_range: 341,
    range_offset: 2,
    range_length: 4,
    range_flags: 1,
    msync: 144,
    open: Some(5),
    openat: 322,
    openat2: 437,
    pwritev2: 393,
    io_uring_setup: 425,
    seccomp: 383,
    landlock_restrict_self: 446,
};

/// There is none.
pub const OTHER_ABI: Option<OtherAbi> = None;

/// Other calls of [`NATIVE`].
pub(crate) const MMAP: u32 = 222;
pub(crate) const IO_SUBMIT: u32 = 2;
pub(crate) const IO_URING_ENTER: u32 = 426;

/// O_LARGEFILE: implied in 64-bit programs, explicit in 32-bit ones. The same bit in both.
pub(crate) const LARGEFILE: i32 = 0o400_000;

/// e_machine of an executable (elf(5)): EM_AARCH64.
pub const ELF_MACHINE: u16 = 183;

/// libseccomp's names of the architectures that a kernel may run programs of.
pub const SECCOMP_NAMES: &[&str] = &["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"];

/// Where Debian has libraries of this architecture.
pub(crate) const LIBRARIES: [&str; 2] = ["/usr/lib/aarch64-linux-gnu", "/lib/aarch64-linux-gnu"];

/// The instruction `svc #0` (Arm's Architecture Reference Manual, C6).
pub(crate) const SYSCALL: [u8; 4] = 0xd400_0001_u32.to_le_bytes();

/// Whether one of the instructions in `code` loads such a number for a call: `mov x8, #N` or `mov w8, #N`.
pub(crate) fn loads_number(code: &[u8], is_wanted: impl Fn(u32) -> bool) -> bool {
    const MOV_W8: u32 = 0x5280_0008;
    const IMMEDIATE: u32 = 0xffff << 5;
    const IS_64_BITS: u32 = 1 << 31;
    instructions(code).any(|instruction| {
        instruction & !(IMMEDIATE | IS_64_BITS) == MOV_W8
            && is_wanted((instruction & IMMEDIATE) >> 5)
    })
}

/// Whether one of the instructions in `code` compares a result with -4095 (all errors): `cmn x0, #4095`.
pub(crate) fn compares_with_errors(code: &[u8]) -> bool {
    instructions(code).any(|instruction| instruction == 0xb13f_fc1f)
}

/// Of code that begins or ends beside a system call: whole instructions.
fn instructions(code: &[u8]) -> impl Iterator<Item = u32> {
    let all = code.chunks_exact(4);
    all.map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// What the functions above find, as compilers write it: a call of fsync, a call of getpid, a wrapper for any number.
#[cfg(test)]
pub(crate) const EXAMPLES: [&[u8]; 3] = [
    &[
        0x48, 0x0a, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6,
    ],
    &[
        0x88, 0x15, 0x80, 0xd2, 0x01, 0, 0, 0xd4, 0xc0, 0x03, 0x5f, 0xd6,
    ],
    &[0x01, 0, 0, 0xd4, 0x1f, 0xfc, 0x3f, 0xb1],
];
