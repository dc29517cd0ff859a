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
