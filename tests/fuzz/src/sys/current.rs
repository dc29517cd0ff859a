//! The input that is tried at the moment, in a file: it is there when the process is not any more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::ptr;

/// Longer inputs are cut off.
const SIZE: usize = 8 << 20;

/// A file of which the first eight bytes are the length of the input, which follows.
pub struct Current {
    at: *mut u8,
}

impl Current {
    /// Named after the target, in the directory `$REFIT_FUZZ_CURRENT`.
    pub fn create(name: &str) -> Current {
        let directory = std::env::var_os("REFIT_FUZZ_CURRENT").map(PathBuf::from);
        let directory = directory.unwrap_or_else(std::env::temp_dir);
        let path = directory.join(format!("{name}.current"));
        let file = open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // SAFETY: a new mapping, of a file of this size.
        let at = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                SIZE,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                &file,
                0,
            )
        };
        let at = at.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Current { at: at.cast() }
    }

    /// Before it is tried.
    pub fn set(&self, input: &[u8]) {
        let length = input.len().min(SIZE - 8);
        // SAFETY: the mapping has that size and lives as long as self; nobody else writes it.
        unsafe {
            self.at.cast::<u64>().write(length as u64);
            ptr::copy_nonoverlapping(input.as_ptr(), self.at.add(8), length);
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    // Another process may have the old one.
    let _ = fs::remove_file(path);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)?;
    file.set_len(SIZE as u64)?;
    Ok(file)
}

impl Drop for Current {
    fn drop(&mut self) {
        // SAFETY: mapped in create, with that size.
        let _ = unsafe { rustix::mm::munmap(self.at.cast(), SIZE) };
    }
}
