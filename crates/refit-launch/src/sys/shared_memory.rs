//! Memory that refit and its guardian share. Made before the guardian is forked,
//! and gone with the last of them.

use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// What may lie in shared memory.
///
/// # Safety
/// It consists of atomic integers alone: zeros are valid, and whatever another
/// process stores.
pub unsafe trait Shared {}

// SAFETY: an atomic integer.
unsafe impl Shared for AtomicU64 {}
// SAFETY: as above.
unsafe impl Shared for AtomicU32 {}
// SAFETY: as above.
unsafe impl Shared for AtomicI32 {}
// SAFETY: its elements are.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}

/// Declares structs that may lie in shared memory; the compiler checks that every
/// field may.
macro_rules! shared {
    ($($(#[$about:meta])* pub struct $name:ident {
        $($(#[$field_about:meta])* pub $field:ident: $kind:ty,)*
    })*) => {$(
        $(#[$about])*
        #[repr(C)]
        pub struct $name {
            $($(#[$field_about])* pub $field: $kind,)*
        }

        // SAFETY: every field is `Shared`, which is checked here.
        unsafe impl $crate::sys::shared_memory::Shared for $name {}
        const _: () = {
            const fn check<T: $crate::sys::shared_memory::Shared>() {}
            $(check::<$kind>();)*
        };
    )*};
}
pub(crate) use shared;

/// The mapping, all zeros at the start.
pub struct SharedMemory<T: Shared>(NonNull<T>);

impl<T: Shared> SharedMemory<T> {
    /// Makes it.
    pub fn new() -> io::Result<SharedMemory<T>> {
        // SAFETY: a new anonymous mapping, of a size that is not 0.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast()).expect("the kernel maps nothing at 0");
        Ok(SharedMemory(at))
    }
}

impl<T: Shared> Deref for SharedMemory<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping has the size of a T and a page's alignment; its zeros
        // and whatever others store are valid (`Shared`); it stays until drop.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Shared> Drop for SharedMemory<T> {
    fn drop(&mut self) {
        // SAFETY: nobody borrows it any more; other processes keep theirs.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}
