//! Loop devices (loop(4), include/uapi/linux/loop.h).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Instant;

use crate::filesystem::{PAUSE, UNMOUNT_TIMEOUT};

const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// Another process may take the free device first.
const TRIES: usize = 16;

/// struct loop_info64
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// struct loop_config
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// How a loop device reads and writes the file beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Past the page cache.
    Direct,
    /// Through it, with the file's readahead.
    Cached,
}

/// A loop device. The kernel detaches it when the last user, a mounted file
/// system included, closes it (LO_FLAGS_AUTOCLEAR).
#[derive(Debug)]
pub struct Loop {
    device: File,
    path: PathBuf,
}

impl Loop {
    /// Attaches a free device to a file.
    ///
    /// # Errors
    /// No device is free, or loop is missing or not allowed.
    pub fn attach(file: &Path, access: Access) -> io::Result<Loop> {
        let backing = OpenOptions::new().read(true).write(true).open(file)?;
        let control = File::options()
            .read(true)
            .write(true)
            .open("/dev/loop-control")?;
        let mut last = io::Error::from_raw_os_error(libc::EBUSY);
        for _ in 0..TRIES {
            // SAFETY: the ioctl takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                })?;
            match configure(&device, &backing, access) {
                Ok(()) => return Ok(Loop { device, path }),
                Err(error) => last = error,
            }
            if last.raw_os_error() != Some(libc::EBUSY) {
                break;
            }
        }
        Err(last)
    }

    /// Waits until no file system on the device is mounted, and everything of it was written: unmounting
    /// removes one mount, and a mount of it in another namespace lives on while a process holds a file in it,
    /// one that looks into /proc/PID/root too. An exclusive open fails until then (open(2): O_EXCL).
    ///
    /// # Errors
    /// It stays mounted.
    pub fn wait_until_unmounted(&self) -> io::Result<()> {
        let began = Instant::now();
        let mut exclusive = OpenOptions::new();
        exclusive.read(true).custom_flags(libc::O_EXCL);
        loop {
            match exclusive.open(&self.path) {
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY)
                        && began.elapsed() < UNMOUNT_TIMEOUT =>
                {
                    sleep(PAUSE);
                }
                result => return result.map(drop),
            }
        }
    }

    /// The device's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // Lazily, when its last user closes it. An error means that it is detached.
        // SAFETY: the ioctl takes no argument.
        unsafe { libc::ioctl(self.device.as_raw_fd(), LOOP_CLR_FD) };
    }
}

fn configure(device: &File, backing: &File, access: Access) -> io::Result<()> {
    let info = LoopInfo64 {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: match access {
            Access::Direct => LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
            Access::Cached => LO_FLAGS_AUTOCLEAR,
        },
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let config = LoopConfig {
        fd: u32::try_from(backing.as_raw_fd()).expect("an open descriptor"),
        block_size: 0,
        info,
        reserved: [0; 8],
    };
    // SAFETY: the kernel reads one loop_config, which lives through the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_layout() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
