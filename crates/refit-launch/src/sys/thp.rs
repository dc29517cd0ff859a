//! prctl(PR_SET_THP_DISABLE), inherited by fork and exec (prctl(2)).

use std::io;

/// Linux 6.18: regions that asked for huge pages keep them.
const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// Whether the kernel would take huge pages away so; afterwards all is as it was.
pub fn try_disable(except_advised: bool) -> io::Result<()> {
    // SAFETY: plain integers; the kernel checks them.
    let before = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0_u64, 0_u64, 0_u64, 0_u64) };
    // Where they are taken away already, nothing is changed.
    if before != 0 {
        return Ok(());
    }
    disable(except_advised)?;
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0_u64, 0_u64, 0_u64, 0_u64) };
    Ok(())
}

/// What PR_GET_THP_DISABLE returns: 0, or 1 and the flags it was set with.
pub struct Before(i32);

/// The state before a child that shares refit's memory changes it: the kernel
/// keeps it with the memory, not with the process (MMF_DISABLE_THP).
pub fn before() -> Before {
    // SAFETY: plain integers; the kernel checks them.
    Before(unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0_u64, 0_u64, 0_u64, 0_u64) })
}

impl Before {
    /// Brings it back, so that the next program gets huge pages as refit got them.
    pub fn restore(&self) {
        let flags = u64::from(self.0.unsigned_abs());
        // SAFETY: plain integers; the kernel checks them.
        unsafe {
            libc::prctl(
                libc::PR_SET_THP_DISABLE,
                flags & 1,
                flags & !1,
                0_u64,
                0_u64,
            )
        };
    }
}

/// Takes huge pages away from this process and what it starts; async-signal-safe.
pub fn disable(except_advised: bool) -> io::Result<()> {
    let flags = if except_advised {
        PR_THP_DISABLE_EXCEPT_ADVISED
    } else {
        0
    };
    // SAFETY: plain integers; the kernel checks them.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1_u64, flags, 0_u64, 0_u64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
