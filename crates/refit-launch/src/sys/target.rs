//! `target.c`, as refit calls it.

use std::ffi::CString;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Mirrors `struct refit_target` (`sync/target.h`).
#[repr(C)]
pub struct Seen {
    pub kind: u32,
    pub reason: u32,
    pub script: u32,
    pub sanitizer: u32,
    pub executable: u32,
    pub own_calls: u32,
    pub path: [u8; 256],
    pub interpreter: [u8; 128],
}

unsafe extern "C" {
    fn refit_target_look(dirfd: c_int, path: *const c_char, out: *mut Seen);
}

/// Looks at the file that an exec of `path` would run.
pub fn look(path: &Path) -> Seen {
    let mut seen = Seen {
        kind: 0,
        reason: 0,
        script: 0,
        sanitizer: 0,
        executable: 0,
        own_calls: 0,
        path: [0; 256],
        interpreter: [0; 128],
    };
    if let Ok(path) = CString::new(path.as_os_str().as_bytes()) {
        // SAFETY: path ends with NUL, and `seen` has the layout of the C
        // struct and outlives the call, which keeps neither.
        unsafe { refit_target_look(libc::AT_FDCWD, path.as_ptr(), &raw mut seen) };
    }
    seen
}
