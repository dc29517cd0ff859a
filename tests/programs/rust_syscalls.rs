// build: -Copt-level=1
//! Opens the file named by the first argument, writes, and syncs it by an instruction of its own, as the crate rustix does
//! on Linux. Dynamic: the C library is loaded, and its fsync is not called.

use std::arch::asm;
use std::fs::OpenOptions;
use std::io::{Error, Write};
use std::os::fd::AsRawFd;

/// fsync(2) without the C library.
fn fsync(fd: i32) -> Result<(), Error> {
    let result: i64;
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("syscall", inlateout("rax") 74_i64 => result, in("rdi") i64::from(fd), out("rcx") _, out("r11") _);
    }
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("svc 0", in("x8") 82_i64, inlateout("x0") i64::from(fd) => result);
    }
    match result {
        0 => Ok(()),
        error => Err(Error::from_raw_os_error((-error) as i32)),
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).expect("the file is named");
    let mut options = OpenOptions::new();
    let mut file = options.create(true).truncate(false).write(true).open(path)?;
    file.write_all(b"x")?;
    fsync(file.as_raw_fd())
}
